// The object forms: values are sent as bytes of the structured clone algorithm (node:v8), which carries data
// and never code. A first step sends the lengths, so that the second step has buffers of the right size.
// Every rank gets a copy, even of its own value.
import { serialize } from 'node:v8';
import type { Verb } from '../all-verbs.ts';
import type { AllGather, Broadcast, Gather, Recv, Scatter, Send } from '../backend.ts';
import {
  missingValues,
  notCloneable,
  objectTooLarge,
  unreadableObject,
  verbNotSupported,
} from '../errors.ts';
import type { Admission } from '../group/admission.ts';
import { asBuffer, type BufferView } from '../group/buffer.ts';
import { rankFault } from '../group/check.ts';
import type { EarlierStep, LastStep, Steps } from '../group/steps.ts';
import { wrongOption } from '../options/errors.ts';
import { checkOptions } from '../options/known-options.ts';
import type { CollectiveOptions, MessageOptions, Received, RootOptions, Source } from '../options/options.ts';
import { maxTag, peerOf, tagOf } from './messages.ts';
import { readObject } from './object-reader.ts';

/**
 * Limit in bytes for all objects of one call together. A rank checks it before it allocates memory for objects that
 * it receives.
 */
export const maxObjectBytes = 2 ** 30;

// Tags of the two messages of an object. The header's tag contains the caller's tag. The header carries the
// tag of the bytes, which differs from object to object, so that several objects can be sent at the same
// time.
const headerTag = 2 ** 30;
const bytesTag = headerTag + 2 ** 29;

export function broadcastObject<T>(group: Admission, value: T | undefined, options: RootOptions): Steps<T> {
  const verb = 'broadcastObject';
  checkOptions(group, verb, options);
  const { timeoutMs = group.timeoutMs, label, root = 0 } = options;
  checkRoot(group, verb, root);
  const mine = group.rank === root ? encode(group, verb, value) : null;
  const lengths = Uint32Array.of(mine?.length ?? 0);
  const operationOf = (buffer: BufferView, seq: number): Broadcast => {
    return { verb: 'broadcast', seq, timeoutMs, packing: 0, label, buffer, root };
  };
  return twoSteps(group, verb, operationOf(asBuffer(lengths), group.seq), 'broadcast', (seq) => {
    const bytes = mine ?? new Uint8Array(checked(group, verb, lengths));
    return { operations: [operationOf(asBuffer(bytes), seq)], finish: () => decode<T>(group, verb, bytes) };
  });
}

export function allGatherObject<T>(group: Admission, value: T, options: CollectiveOptions): Steps<T[]> {
  const verb = 'allGatherObject';
  checkOptions(group, verb, options);
  const { timeoutMs = group.timeoutMs, label } = options;
  const bytes = encode(group, verb, value);
  const { header, lengths } = headerOf(group, bytes.length, timeoutMs, label);
  return twoSteps(group, verb, header, 'allGather', (seq) => {
    const all = new Uint8Array(checked(group, verb, lengths));
    const [input, output] = [asBuffer(bytes), asBuffer(all)];
    const counts = countsOf(lengths);
    const body: AllGather = { verb: 'allGather', seq, timeoutMs, packing: 0, label, input, output, counts };
    return { operations: [body], finish: () => decodeAll<T>(group, verb, all, lengths) };
  });
}

export function gatherObject<T>(group: Admission, value: T, options: RootOptions): Steps<T[] | null> {
  const verb = 'gatherObject';
  checkOptions(group, verb, options);
  const { timeoutMs = group.timeoutMs, label, root = 0 } = options;
  checkRoot(group, verb, root);
  const bytes = encode(group, verb, value);
  const { header, lengths } = headerOf(group, bytes.length, timeoutMs, label);
  const bodyOf = (seq: number, all: Uint8Array | null): Gather => {
    const [input, output] = [asBuffer(bytes), all && asBuffer(all)];
    const counts = countsOf(lengths);
    return { verb: 'gather', seq, timeoutMs, packing: 0, label, input, output, counts, root };
  };
  return twoSteps(group, verb, header, 'gather', (seq) => {
    const length = checked(group, verb, lengths);
    const all = group.rank === root ? new Uint8Array(length) : null;
    return {
      operations: [bodyOf(seq, all)],
      finish: () => all && decodeAll<T>(group, verb, all, lengths),
    };
  });
}

export function scatterObject<T>(
  group: Admission,
  values: readonly T[] | null,
  options: RootOptions,
): Steps<T> {
  const verb = 'scatterObject';
  checkOptions(group, verb, options);
  const { timeoutMs = group.timeoutMs, label, root = 0 } = options;
  checkRoot(group, verb, root);
  const isRoot = group.rank === root;
  if (isRoot && values != null && !Array.isArray(values))
    throw group.error(wrongOption(verb, 'values', 'a list with one value for each rank', values));
  if (isRoot && values?.length !== group.size)
    throw group.error(missingValues(verb, group.size, values?.length));
  const all = isRoot ? (values as readonly T[]).map((value) => encode(group, verb, value)) : null;
  const lengths = Uint32Array.from({ length: group.size }, (_, rank) => all?.[rank]?.length ?? 0);
  const { rank, seq } = group;
  const header: Broadcast = {
    verb: 'broadcast',
    seq,
    timeoutMs,
    packing: 0,
    label,
    buffer: asBuffer(lengths),
    root,
  };
  return twoSteps(group, verb, header, 'scatter', (seq) => {
    checked(group, verb, lengths);
    const bytes = new Uint8Array(lengths[rank] as number);
    const body: Scatter = {
      verb: 'scatter',
      seq,
      timeoutMs,
      packing: 0,
      label,
      input: all && asBuffer(Buffer.concat(all)),
      output: asBuffer(bytes),
      counts: countsOf(lengths),
      root,
    };
    return { operations: [body], finish: () => decode<T>(group, verb, bytes) };
  });
}

export function sendObject<T>(
  group: Admission,
  value: T,
  peer: number,
  options: MessageOptions,
): Steps<void> {
  checkOptions(group, 'sendObject', options);
  const { timeoutMs = group.timeoutMs } = options;
  const tag = headerTag + tagOf(group, 'sendObject', options);
  checkRank(group, 'sendObject', 'peer', peer);
  const bytes = encode(group, 'sendObject', value);
  const seq = group.messageSeq('send', peer);
  const bodyTag = bytesTag + (group.nextObject() % (maxTag + 1));
  const header = Uint32Array.of(bytes.length, bodyTag);
  const common = { verb: 'send', timeoutMs, peer } as const;
  const first: Send = { ...common, seq, buffer: asBuffer(header), tag };
  const second: Send = { ...common, seq: seq + 1, buffer: asBuffer(bytes), tag: bodyTag };
  return { operations: [group.acceptMessage(first), group.acceptMessage(second)], finish: () => {} };
}

export function recvObject<T>(group: Admission, from: Source, options: MessageOptions): Steps<Received<T>> {
  const verb = 'recvObject';
  checkOptions(group, verb, options);
  const { timeoutMs = group.timeoutMs } = options;
  const tag = headerTag + tagOf(group, verb, options);
  const peer = peerOf(group, verb, from);
  const header = new Uint32Array(2);
  const common = { verb: 'recv', timeoutMs } as const;
  const seq = group.messageSeq('recv', peer);
  const first: Recv = { ...common, seq, buffer: asBuffer(header), peer, tag };
  return {
    operations: [group.acceptMessage(first)],
    more: ([source]) => {
      const [length, bodyTag] = header as unknown as [number, number];
      const bytes = new Uint8Array(checked(group, verb, [length]));
      const peer = source as number;
      const seq = group.messageSeq('recv', peer);
      const second: Recv = { ...common, seq, buffer: asBuffer(bytes), peer, tag: bodyTag };
      return {
        operations: [group.acceptMessage(second)],
        finish: () => ({ value: decode<T>(group, verb, bytes), source: peer }),
      };
    },
  };
}

/**
 * Checks the root before the header is sent: if the header is an allGather, only the second step has a root.
 */
function checkRoot(group: Admission, verb: string, root: number): void {
  checkRank(group, verb, 'root', root);
}

function checkRank(group: Admission, verb: string, what: 'root' | 'peer', rank: number): void {
  const fault = rankFault(group, verb, what, rank);
  if (fault !== null) throw group.error(fault);
}

/** Returns the first step of a gathering call: an allGather of the ranks' lengths. */
function headerOf(group: Admission, length: number, timeoutMs: number, label: string | undefined) {
  const lengths = new Uint32Array(group.size);
  const [input, output] = [asBuffer(Uint32Array.of(length)), asBuffer(lengths)];
  const { seq } = group;
  const header: AllGather = {
    verb: 'allGather',
    seq,
    timeoutMs,
    packing: 0,
    label,
    input,
    output,
    counts: null,
  };
  return { header, lengths };
}

/**
 * Returns the steps for a header and then the bytes. Reserves both sequence numbers now, so that collectives
 * called in the meantime come after both.
 */
function twoSteps<T>(
  group: Admission,
  verb: string,
  header: Broadcast | AllGather,
  bodyVerb: Verb,
  more: (seq: number) => LastStep<T>,
): EarlierStep<T> {
  const { verbs } = group.supports;
  if (!verbs.includes(bodyVerb)) throw group.error(verbNotSupported(verb, group.backend, verbs));
  group.accept(header);
  const seq = group.reserve();
  return { operations: [header], more: () => more(seq) };
}

function encode(group: Admission, verb: string, value: unknown): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = serialize(value);
  } catch (cause) {
    throw group.error(notCloneable(verb, (cause as Error).message), { cause });
  }
  checked(group, verb, [bytes.length]);
  return bytes;
}

/** Returns the sum of the lengths. Throws if it exceeds maxObjectBytes. */
function checked(group: Admission, verb: string, lengths: Iterable<number>): number {
  let sum = 0;
  for (const length of lengths) sum += length;
  if (sum > maxObjectBytes) throw group.error(objectTooLarge(verb, sum, maxObjectBytes));
  return sum;
}

function countsOf(lengths: Uint32Array): number[] | null {
  return lengths.every((length) => length === lengths[0]) ? null : [...lengths];
}

function decode<T>(group: Admission, verb: string, bytes: Uint8Array): T {
  try {
    return readObject(bytes) as T;
  } catch (cause) {
    throw group.error(unreadableObject(verb, (cause as Error).message), { cause });
  }
}

function decodeAll<T>(group: Admission, verb: string, all: Uint8Array, lengths: Uint32Array): T[] {
  let from = 0;
  return Array.from(lengths, (length) => {
    from += length;
    return decode<T>(group, verb, all.subarray(from - length, from));
  });
}
