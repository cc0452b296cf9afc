// What each rank has of its own: where its generator is in its stream, and its loader in the epoch. A snapshot keeps
// that of every rank, beside the rest, of which it keeps rank 0's.
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type BufferCarrier, bufferSymbol } from '@ringwise/collectives';
import { notSavable, ownStateMissing, ownStateUndealt } from '../errors.ts';

const marker: unique symbol = Symbol.for('ringwise.perRank') as never;

/** A value of which each rank has another one; see perRank(). */
export interface PerRank<T> {
  readonly [marker]: T;
}

/**
 * Marks a value of a snapshot's state as this rank's own: each rank gets its own back, on the same number of ranks.
 * JSON values, bigints and typed arrays. What a generator or a loader gives by state() needs no mark.
 */
export function perRank<T>(value: T): PerRank<T> {
  return { [marker]: value };
}

/** 'stream': of a generator; 'position': of a sampler or loader; 'marked': of perRank(). */
type Kind = 'stream' | 'position' | 'marked';

export interface OwnState {
  readonly kind: Kind;
  readonly value: unknown;
}

/** What a rank has of its own, by its path in the state. */
export type OwnStates = ReadonlyMap<string, OwnState>;

interface StreamState {
  readonly seed: number;
  readonly offset: number;
}

/** The own state that `item` is, or null. Those of generators and samplers are recognised by their members. */
export function ownStateOf(item: object): OwnState | null {
  if (marker in item) {
    const value = item[marker];
    const known = typeof value === 'object' && value !== null ? ownStateOf(value) : null;
    return known ?? { kind: 'marked', value };
  }
  const { seed, offset, epoch, consumed, length } = item as Partial<Record<string, unknown>>;
  const isStream = Number.isSafeInteger(seed) && Number.isSafeInteger(offset);
  if (isStream && Object.keys(item).length === 2) return { kind: 'stream', value: item };
  const isPosition = seed !== undefined && [epoch, consumed, length].every(Number.isSafeInteger);
  return isPosition && !Array.isArray(item) ? { kind: 'position', value: item } : null;
}

/** What the state of one rank holds of its own. Throws ERR_DDP_INVALID for values that cannot be sent. */
export function ownStatesOf(state: unknown): OwnStates {
  const found = new Map<string, OwnState>();
  const visit = (item: unknown, path: string, above: readonly object[]): void => {
    if (typeof item !== 'object' || item === null || above.includes(item)) return;
    if (ArrayBuffer.isView(item) || bufferSymbol in item) return;
    const own = ownStateOf(item);
    if (own !== null) {
      checkSendable(own.value, path);
      found.set(path, own);
      return;
    }
    for (const [key, each] of Object.entries(item)) visit(each, below(item, path, key), [...above, item]);
  };
  visit(state, 'state', []);
  return found;
}

/** The path of a member. */
export function below(item: object, path: string, key: string): string {
  return Array.isArray(item) ? `${path}[${key}]` : `${path}.${key}`;
}

function checkSendable(item: unknown, path: string): void {
  if (typeof item === 'function' || typeof item === 'symbol') throw notSavable(path, typeof item);
  if (typeof item !== 'object' || item === null || ArrayBuffer.isView(item)) return;
  if ((item as Partial<BufferCarrier>)[bufferSymbol] !== undefined)
    throw notSavable(path, 'a tensor in perRank()');
  for (const [key, each] of Object.entries(item)) checkSendable(each, `${path}.${key}`);
}

/** In a header: the values of all ranks, in rank order. */
export interface StoredPerRank {
  readonly kind: Kind;
  readonly path: string;
  readonly values: readonly unknown[];
}

/** What is saved at each path: one value where all ranks have the same, else all of them. Throws where a rank has none. */
export function gathered(ranks: readonly OwnStates[]): Map<string, readonly unknown[]> {
  const paths = new Set(ranks.flatMap((own) => [...own.keys()]));
  return new Map(Array.from(paths, (path) => [path, valuesAt(path, ranks)]));
}

function valuesAt(path: string, ranks: readonly OwnStates[]): readonly unknown[] {
  const states = ranks.map((own) => own.get(path));
  const without = states.indexOf(undefined);
  if (without !== -1) {
    const rank = states.findIndex((state) => state !== undefined);
    throw ownStateMissing(path, rank, without);
  }
  const values = states.map((state) => state!.value);
  return values.every((value) => isDeepStrictEqual(value, values[0])) ? values.slice(0, 1) : values;
}

/**
 * The value of one of `size` ranks. On another number of ranks than before, generators go on where there was one, and the
 * other ranks get streams of their own, which depend on rank 0's; of anything else there is none, so it throws.
 */
export function dealt({ kind, path, values }: StoredPerRank, rank: number, size: number): unknown {
  if (values.length === size || (kind === 'stream' && rank < values.length)) return values[rank];
  if (kind === 'stream') return streamFor(rank, values[0] as StreamState);
  throw ownStateUndealt(path, values.length, size);
}

/** A stream that no rank has used before: its seed is the first 53 bits of SHA-256("<seed> <offset> <rank>") of rank 0's. */
function streamFor(rank: number, { seed, offset }: StreamState): StreamState {
  const hash = createHash('sha256').update(`${seed} ${offset} ${rank}`).digest();
  return { seed: Number(hash.readBigUInt64BE() >> 11n), offset: 0 };
}
