// Sends the state of the training to members without it, between two steps. The first member that has the state sends
// its header: all values except the arrays, and the layout of the arrays. The arrays are sent in chunks, divided among
// the members that have the state; for a single joining member, among those on its host if there are any. A chunk is a
// message to one joining member, or a broadcast to several. Each chunk ends with its SHA-256. A joining member loads
// the state only when all chunks have arrived and their hashes agree, so it gets either the whole state or nothing.
import { createHash } from 'node:crypto';
import type { Group } from '@ringwise/collectives';
import { type PackedState, packState, type Revive, unpackState } from '@ringwise/ddp';
import { chunkDamaged, statesDiffer, transferFailed } from '../errors.ts';
import { type Chunk, chunksBySource, chunksOf, largestChunk } from './chunks.ts';
import { firstDifference, unchangedMembers } from './headers.ts';
import { haveSameArrays, sharesOf, sumsOf } from './shares.ts';

const hashBytes = 32;

/** Functions to read the state on a member that has it, and to load it on a joining member. */
export interface TransferredState {
  /**
   * Returns plain values, typed arrays and tensors. The transfer reads the arrays until it has ended, so they must not
   * change.
   */
  readonly save: () => unknown;
  /** Loads the state. `unchanged` names members of the state that equal those returned by held(). */
  readonly load: (value: unknown, unchanged: ReadonlySet<string>) => void;
  /**
   * Returns the state that a joining member received as a learner, or null. Arrays that are equal are not sent again.
   */
  readonly held?: () => PackedState | null;
  /** Returns the replacement of a tensor that was sent. Default: its memory, dtype and shape. */
  readonly revive?: Revive;
}

/** Options of transfer(), for tests. */
export interface TransferOptions {
  /** Largest chunk in bytes. Default 1 MiB. */
  readonly chunkBytes?: number;
}

/** The amount of data that a transfer has sent. */
export interface TransferReport {
  /** Bytes that were sent, to each joiner. */
  readonly bytes: number;
  /** Bytes of the whole state. */
  readonly stateBytes: number;
  readonly chunks: number;
  /** Ranks that sent chunks. */
  readonly sources: readonly number[];
}

/**
 * Sends the state to the ranks `joined` of `group`. Collective: every rank calls it with the same list; at least one
 * rank is not in it. Resolves on all ranks when all have the state. Rejects on all ranks with ERR_ELASTIC_STATE, and no
 * rank loads anything, if members that have the state differ, a chunk is damaged, or the state does not fit the model
 * of a joining member; and with the group's error if a rank is lost.
 */
export async function transfer(
  group: Group,
  joined: readonly number[],
  state: TransferredState,
  { chunkBytes = largestChunk }: TransferOptions = {},
): Promise<TransferReport> {
  const have = Array.from({ length: group.size }, (_, rank) => rank).filter((rank) => !joined.includes(rank));
  const [first] = have as [number];
  const isJoining = joined.includes(group.rank);
  const packed = isJoining ? null : packState(state.save());
  const header = await group.broadcastObject(group.rank === first ? packed!.header : undefined, {
    root: first,
  });
  const faults: Fault[] = [];
  if (packed !== null && packed.header !== header) {
    faults.push({ kind: 'differs', text: firstDifference(JSON.parse(header), JSON.parse(packed.header)) });
  }
  const held = isJoining ? (state.held?.() ?? null) : null;
  const told = await settle(group, faults, held !== null);

  const incoming = isJoining ? unpackState(header, state.revive) : null;
  const layout = packed?.arrays ?? incoming!.arrays;
  const sources = nearest(group, have, joined);
  const wanted = told.includes(true) ? await different(group, have, layout, packed, held) : null;
  const sent = layout.map(({ bytes }, index) => ({ bytes: (wanted?.has(index) ?? true) ? bytes : 0 }));
  const shares = chunksBySource(chunksOf(sent, chunkBytes), sources.length);
  const memory = isJoining
    ? await Promise.all(
        layout.map(async ({ bytes }, index) =>
          sent[index]!.bytes < bytes ? await held!.arrays[index]!.read() : new Uint8Array(bytes),
        ),
      )
    : null;
  const take = (chunk: Chunk, message: Uint8Array, source: number) => {
    if (isIntact(message, chunk.bytes)) unpack(message, chunk, memory!);
    else faults.push({ kind: 'damaged', text: String(source) });
  };
  if (joined.length === 1) {
    if (isJoining) {
      await Promise.all(shares.map((share, i) => receiveAll(group, sources[i]!, share, take)));
    } else {
      await sendAll(group, joined[0]!, shares[sources.indexOf(group.rank)] ?? [], packed!);
    }
  } else {
    const buffer = new Uint8Array(largestMessage(shares.flat()));
    for (const [i, share] of shares.entries()) {
      const root = sources[i]!;
      for (const chunk of share) {
        const message = buffer.subarray(0, chunk.bytes + hashBytes);
        if (root === group.rank) await pack(packed!, chunk, message);
        await group.broadcast(message, { root });
        if (isJoining) take(chunk, message, root);
      }
    }
  }
  await settle(group, faults);

  if (isJoining) {
    try {
      for (const [i, { fill }] of incoming!.arrays.entries()) fill(memory![i]!);
      const changed = new Set(
        layout.flatMap(({ offset }, index) => (sent[index]!.bytes > 0 ? [offset] : [])),
      );
      const unchanged = held === null ? new Set<string>() : unchangedMembers(held.header, header, changed);
      state.load(incoming!.value(), unchanged);
    } catch (error) {
      faults.push({ kind: 'unfit', text: error instanceof Error ? error.message : String(error), error });
    }
  }
  await settle(group, faults);
  const chunks = shares.reduce((sum, share) => sum + share.length, 0);
  const total = (arrays: readonly { readonly bytes: number }[]) =>
    arrays.reduce((sum, { bytes }) => sum + bytes, 0);
  return { bytes: total(sent), stateBytes: total(layout), chunks, sources };
}

interface Fault {
  readonly kind: 'differs' | 'damaged' | 'unfit';
  readonly text: string;
  readonly error?: unknown;
}

/**
 * Returns the arrays to send, by index in `layout`: those that a joining member does not have, or has with other
 * values. Each member computes the checksums of the arrays in its share. Collective.
 */
async function different(
  group: Group,
  have: readonly number[],
  layout: readonly { readonly bytes: number }[],
  packed: PackedState | null,
  held: PackedState | null,
): Promise<ReadonlySet<number>> {
  const indices = [...layout.keys()];
  const shares = sharesOf(
    layout.map(({ bytes }) => bytes),
    have.length,
  );
  const isComparable = held !== null && haveSameArrays(held.arrays, layout);
  const own = packed
    ? await sumsOf(packed, shares[have.indexOf(group.rank)]!)
    : isComparable
      ? await sumsOf(held, indices)
      : null;
  const told = await group.allGatherObject(own);
  const sums = have.flatMap((rank) => told[rank]!);
  const differ = packed ? [] : indices.filter((index) => own?.[index] !== sums[index]);
  return new Set((await group.allGatherObject(differ)).flat());
}

/**
 * Throws the same error on all ranks if one of them has a fault. Otherwise returns the notes of all ranks. Collective.
 */
async function settle(group: Group, faults: readonly Fault[], note = false): Promise<boolean[]> {
  const [own] = faults;
  const all = await group.allGatherObject({ fault: own ? { kind: own.kind, text: own.text } : null, note });
  const told = all.map(({ fault }) => fault);
  const rank = told.findIndex((fault) => fault !== null);
  if (rank === -1) return all.map((each) => each.note);
  const { kind, text } = told[rank]!;
  if (kind === 'differs') throw statesDiffer(text, rank);
  if (kind === 'damaged') throw chunkDamaged(Number(text), rank);
  throw transferFailed(text, rank, rank === group.rank ? own?.error : undefined);
}

/** Returns the ranks that send: those on the host of a single joiner if there are any, else all that have the state. */
function nearest(group: Group, have: readonly number[], joined: readonly number[]): readonly number[] {
  if (joined.length > 1) return have;
  const near = group.hosts.find((ranks) => ranks.includes(joined[0]!)) ?? [];
  const local = have.filter((rank) => near.includes(rank));
  return local.length > 0 ? local : have;
}

/**
 * Sends all chunks; packs each while the previous one is being sent. Uses two buffers, because allocating memory is
 * slow.
 */
async function sendAll(
  group: Group,
  to: number,
  chunks: readonly Chunk[],
  packed: PackedState,
): Promise<void> {
  const buffers = [0, 1].map(() => new Uint8Array(largestMessage(chunks)));
  const sent: Promise<unknown>[] = [];
  for (const [i, chunk] of chunks.entries()) {
    await sent[i - 2];
    const message = buffers[i % 2]!.subarray(0, chunk.bytes + hashBytes);
    await pack(packed, chunk, message);
    sent.push(started(group.send(message, to)));
  }
  await Promise.all(sent);
}

/** Receives all chunks, and passes each to `take` while the next one is received. */
async function receiveAll(
  group: Group,
  from: number,
  chunks: readonly Chunk[],
  take: (chunk: Chunk, message: Uint8Array, source: number) => void,
): Promise<void> {
  const buffers = [0, 1].map(() => new Uint8Array(largestMessage(chunks)));
  const receive = (i: number) => {
    const message = buffers[i % 2]!.subarray(0, (chunks[i]?.bytes ?? 0) + hashBytes);
    return { message, work: i < chunks.length ? started(group.recv(message, from)) : null };
  };
  let next = receive(0);
  for (const [i, chunk] of chunks.entries()) {
    const { message, work } = next;
    await work;
    next = receive(i + 1);
    take(chunk, message, from);
  }
}

/** Returns the promise of an operation that is awaited later. */
function started(work: PromiseLike<unknown>): Promise<unknown> {
  const promise = Promise.resolve(work);
  promise.catch(() => {});
  return promise;
}

const largestMessage = (chunks: readonly Chunk[]): number =>
  chunks.reduce((most, { bytes }) => Math.max(most, bytes), 0) + hashBytes;

/** Copies a chunk to `message` first, so that the appended hash covers exactly the bytes that are sent. */
async function pack(packed: PackedState, { bytes, pieces }: Chunk, message: Uint8Array): Promise<void> {
  let at = 0;
  for (const { array, from, to } of pieces) {
    const memory = await packed.arrays[array]!.read();
    message.set(memory.subarray(from, to), at);
    at += to - from;
  }
  message.set(createHash('sha256').update(message.subarray(0, bytes)).digest(), bytes);
}

function isIntact(message: Uint8Array, bytes: number): boolean {
  const hash = createHash('sha256').update(message.subarray(0, bytes)).digest();
  return hash.equals(message.subarray(bytes));
}

function unpack(message: Uint8Array, { pieces }: Chunk, memory: readonly Uint8Array[]): void {
  let at = 0;
  for (const { array, from, to } of pieces) {
    memory[array]!.set(message.subarray(at, at + to - from), from);
    at += to - from;
  }
}
