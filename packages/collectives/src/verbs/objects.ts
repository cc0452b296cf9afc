// The object forms: values are sent as bytes of the structured clone algorithm (node:v8), which carries data
// and never code. A first step sends the lengths, so that the second step has buffers of the right size.
// Every rank gets a copy, even of its own value.
import { deserialize, serialize } from 'node:v8';
import type { Verb } from '../all-verbs.ts';
import type { AllGather, Broadcast, Gather, Recv, Scatter, Send } from '../backend.ts';
import {
  missingValues,
  notCloneable,
  objectTooLarge,
  unreadableObject,
  verbNotSupported,
} from '../errors.ts';
import { asBuffer, type BufferView } from '../group/buffer.ts';
import type { Calls } from '../group/calls.ts';
import { rankFault } from '../group/check.ts';
import type { EarlierStep, LastStep, Steps } from '../group/steps.ts';
import { checkOptions } from '../options/known-options.ts';
import type { CollectiveOptions, MessageOptions, Received, RootOptions, Source } from '../options/options.ts';
import { maxTag, peerOf, tagOf } from './messages.ts';

/**
 * Limit in bytes for one object, and for all objects that a rank receives in one call. Checked before memory
 * is allocated.
 */
export const maxObjectBytes = 2 ** 30;

// Tags of the two messages of an object. The header's tag contains the caller's tag. The header carries the
// tag of the bytes, which differs from object to object, so that several objects can be sent at the same
// time.
const headerTag = 2 ** 30;
const bytesTag = headerTag + 2 ** 29;

export function broadcastObject<T>(calls: Calls, value: T | undefined, options: RootOptions): Steps<T> {
  const verb = 'broadcastObject';
  checkOptions(calls, verb, options);
  const { timeoutMs = calls.timeoutMs, label, root = 0 } = options;
  checkRoot(calls, verb, root);
  const mine = calls.rank === root ? encode(calls, verb, value) : null;
  const lengths = Uint32Array.of(mine?.length ?? 0);
  const operationOf = (buffer: BufferView, seq: number): Broadcast => {
    return { verb: 'broadcast', seq, timeoutMs, packing: 0, label, buffer, root };
  };
  return twoSteps(calls, verb, operationOf(asBuffer(lengths), calls.seq), 'broadcast', (seq) => {
    const bytes = mine ?? new Uint8Array(checked(calls, verb, lengths));
    return { operations: [operationOf(asBuffer(bytes), seq)], finish: () => decode<T>(calls, verb, bytes) };
  });
}

export function allGatherObject<T>(calls: Calls, value: T, options: CollectiveOptions): Steps<T[]> {
  const verb = 'allGatherObject';
  checkOptions(calls, verb, options);
  const { timeoutMs = calls.timeoutMs, label } = options;
  const bytes = encode(calls, verb, value);
  const { header, lengths } = headerOf(calls, bytes.length, timeoutMs, label);
  return twoSteps(calls, verb, header, 'allGather', (seq) => {
    const all = new Uint8Array(checked(calls, verb, lengths));
    const [input, output] = [asBuffer(bytes), asBuffer(all)];
    const counts = countsOf(lengths);
    const body: AllGather = { verb: 'allGather', seq, timeoutMs, packing: 0, label, input, output, counts };
    return { operations: [body], finish: () => decodeAll<T>(calls, verb, all, lengths) };
  });
}

export function gatherObject<T>(calls: Calls, value: T, options: RootOptions): Steps<T[] | null> {
  const verb = 'gatherObject';
  checkOptions(calls, verb, options);
  const { timeoutMs = calls.timeoutMs, label, root = 0 } = options;
  checkRoot(calls, verb, root);
  const bytes = encode(calls, verb, value);
  const { header, lengths } = headerOf(calls, bytes.length, timeoutMs, label);
  const bodyOf = (seq: number, all: Uint8Array | null): Gather => {
    const [input, output] = [asBuffer(bytes), all && asBuffer(all)];
    const counts = countsOf(lengths);
    return { verb: 'gather', seq, timeoutMs, packing: 0, label, input, output, counts, root };
  };
  return twoSteps(calls, verb, header, 'gather', (seq) => {
    const length = checked(calls, verb, lengths);
    const all = calls.rank === root ? new Uint8Array(length) : null;
    return {
      operations: [bodyOf(seq, all)],
      finish: () => all && decodeAll<T>(calls, verb, all, lengths),
    };
  });
}

export function scatterObject<T>(calls: Calls, values: readonly T[] | null, options: RootOptions): Steps<T> {
  const verb = 'scatterObject';
  checkOptions(calls, verb, options);
  const { timeoutMs = calls.timeoutMs, label, root = 0 } = options;
  checkRoot(calls, verb, root);
  const isRoot = calls.rank === root;
  if (isRoot && values?.length !== calls.size)
    throw calls.error(missingValues(verb, calls.size, values?.length));
  const all = isRoot ? (values as readonly T[]).map((value) => encode(calls, verb, value)) : null;
  const lengths = Uint32Array.from({ length: calls.size }, (_, rank) => all?.[rank]?.length ?? 0);
  const { rank, seq } = calls;
  const header: Broadcast = {
    verb: 'broadcast',
    seq,
    timeoutMs,
    packing: 0,
    label,
    buffer: asBuffer(lengths),
    root,
  };
  return twoSteps(calls, verb, header, 'scatter', (seq) => {
    checked(calls, verb, lengths);
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
    return { operations: [body], finish: () => decode<T>(calls, verb, bytes) };
  });
}

export function sendObject<T>(calls: Calls, value: T, peer: number, options: MessageOptions): Steps<void> {
  checkOptions(calls, 'sendObject', options);
  const { timeoutMs = calls.timeoutMs } = options;
  const tag = headerTag + tagOf(calls, 'sendObject', options);
  const bytes = encode(calls, 'sendObject', value);
  const seq = calls.messageSeq('send', peer);
  const bodyTag = bytesTag + (calls.nextObject() % (maxTag + 1));
  const header = Uint32Array.of(bytes.length, bodyTag);
  const common = { verb: 'send', timeoutMs, peer } as const;
  const first: Send = { ...common, seq, buffer: asBuffer(header), tag };
  const second: Send = { ...common, seq: seq + 1, buffer: asBuffer(bytes), tag: bodyTag };
  return { operations: [calls.acceptMessage(first), calls.acceptMessage(second)], finish: () => {} };
}

export function recvObject<T>(calls: Calls, from: Source, options: MessageOptions): Steps<Received<T>> {
  const verb = 'recvObject';
  checkOptions(calls, verb, options);
  const { timeoutMs = calls.timeoutMs } = options;
  const tag = headerTag + tagOf(calls, verb, options);
  const peer = peerOf(calls, verb, from);
  const header = new Uint32Array(2);
  const common = { verb: 'recv', timeoutMs } as const;
  const seq = calls.messageSeq('recv', peer);
  const first: Recv = { ...common, seq, buffer: asBuffer(header), peer, tag };
  return {
    operations: [calls.acceptMessage(first)],
    more: ([source]) => {
      const [length, bodyTag] = header as unknown as [number, number];
      const bytes = new Uint8Array(checked(calls, verb, [length]));
      const peer = source as number;
      const seq = calls.messageSeq('recv', peer);
      const second: Recv = { ...common, seq, buffer: asBuffer(bytes), peer, tag: bodyTag };
      return {
        operations: [calls.acceptMessage(second)],
        finish: () => ({ value: decode<T>(calls, verb, bytes), source: peer }),
      };
    },
  };
}

/**
 * Checks the root before the header is sent: if the header is an allGather, only the second step has a root.
 */
function checkRoot(calls: Calls, verb: string, root: number): void {
  const fault = rankFault(calls, verb, 'root', root);
  if (fault !== null) throw calls.error(fault);
}

/** Returns the first step of a gathering call: an allGather of the ranks' lengths. */
function headerOf(calls: Calls, length: number, timeoutMs: number, label: string | undefined) {
  const lengths = new Uint32Array(calls.size);
  const [input, output] = [asBuffer(Uint32Array.of(length)), asBuffer(lengths)];
  const { seq } = calls;
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
  calls: Calls,
  verb: string,
  header: Broadcast | AllGather,
  bodyVerb: Verb,
  more: (seq: number) => LastStep<T>,
): EarlierStep<T> {
  const { verbs } = calls.supports;
  if (!verbs.includes(bodyVerb)) throw calls.error(verbNotSupported(verb, calls.backend, verbs));
  calls.accept(header);
  const seq = calls.reserve();
  return { operations: [header], more: () => more(seq) };
}

function encode(calls: Calls, verb: string, value: unknown): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = serialize(value);
  } catch (cause) {
    throw calls.error(notCloneable(verb, (cause as Error).message), { cause });
  }
  checked(calls, verb, [bytes.length]);
  return bytes;
}

/** Returns the sum of the lengths. Throws if it exceeds maxObjectBytes. */
function checked(calls: Calls, verb: string, lengths: Iterable<number>): number {
  let sum = 0;
  for (const length of lengths) sum += length;
  if (sum > maxObjectBytes) throw calls.error(objectTooLarge(verb, sum, maxObjectBytes));
  return sum;
}

function countsOf(lengths: Uint32Array): number[] | null {
  return lengths.every((length) => length === lengths[0]) ? null : [...lengths];
}

function decode<T>(calls: Calls, verb: string, bytes: Uint8Array): T {
  try {
    return deserialize(bytes) as T;
  } catch (cause) {
    throw calls.error(unreadableObject(verb, (cause as Error).message), { cause });
  }
}

function decodeAll<T>(calls: Calls, verb: string, all: Uint8Array, lengths: Uint32Array): T[] {
  let from = 0;
  return Array.from(lengths, (length) => {
    from += length;
    // A copy, because typed arrays in the value would be views of `all`, and values must not share memory.
    return decode<T>(calls, verb, all.slice(from - length, from));
  });
}
