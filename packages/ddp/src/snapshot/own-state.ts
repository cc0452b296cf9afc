// Own state is state that differs between ranks: the position of a random generator, the position of a loader
// in its epoch, and values that a program has marked. A snapshot saves it for every rank; of all other state it
// saves rank 0's.
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type BufferCarrier, bufferSymbol } from '@ringwise/collectives';
import { notSavable, ownStateMissing, ownStateNotForSize } from '../errors.ts';

const marker: unique symbol = Symbol.for('ringwise.perRank') as never;

/** A value that differs between ranks; see perRank(). */
export interface PerRank<T> {
  readonly [marker]: T;
}

/**
 * Marks a value of a snapshot's state as this rank's own: each rank gets its own value back, with the same
 * number of ranks. Accepts JSON values, bigints and typed arrays. The state() of a generator or loader needs
 * no mark.
 */
export function perRank<T>(value: T): PerRank<T> {
  return { [marker]: value };
}

/** 'stream': state of a generator. 'position': state of a sampler or loader. 'marked': value of perRank(). */
type Kind = 'stream' | 'position' | 'marked';

export interface OwnState {
  readonly kind: Kind;
  readonly value: unknown;
}

/** A rank's own values, by their paths in the state. */
export type OwnStates = ReadonlyMap<string, OwnState>;

interface StreamState {
  readonly seed: number;
  readonly offset: number;
}

/**
 * Returns `item` as own state, or null for all other values. Recognizes states of generators and samplers by their
 * members.
 */
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

/** Returns a rank's own values in its state. Throws ERR_DDP_INVALID for values that cannot be sent. */
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

/** Returns the path of a member. */
export function below(item: object, path: string, key: string): string {
  return Array.isArray(item) ? `${path}[${key}]` : `${path}.${key}`;
}

function checkSendable(item: unknown, path: string, above: readonly object[] = []): void {
  if (typeof item === 'function' || typeof item === 'symbol') throw notSavable(path, typeof item);
  if (typeof item !== 'object' || item === null || ArrayBuffer.isView(item)) return;
  if ((item as Partial<BufferCarrier>)[bufferSymbol] !== undefined)
    throw notSavable(path, 'a tensor in perRank()');
  if (marker in item) throw notSavable(path, 'a perRank() inside another one');
  if (above.includes(item)) throw notSavable(path, 'an object that contains itself');
  for (const [key, each] of Object.entries(item))
    checkSendable(each, below(item, path, key), [...above, item]);
}

/** A per-rank value in a header: the values of all ranks, in rank order. */
export interface StoredPerRank {
  readonly kind: Kind;
  readonly path: string;
  readonly values: readonly unknown[];
}

/** The values to save at a path. */
export interface GatheredValues {
  /** The values of all ranks, or one value for all. */
  readonly values: readonly unknown[];
  /** Whether any number of ranks gets the one value. */
  readonly isShared: boolean;
}

/**
 * Returns the values to save at each path: one value if all ranks have the same, else all values. The generator of a
 * single rank is its own, because nothing says that further ranks would draw the same numbers. Throws if a rank has no
 * value.
 */
export function gathered(ranks: readonly OwnStates[]): Map<string, GatheredValues> {
  const paths = new Set(ranks.flatMap((own) => [...own.keys()]));
  return new Map(Array.from(paths, (path) => [path, valuesAt(path, ranks)]));
}

function valuesAt(path: string, ranks: readonly OwnStates[]): GatheredValues {
  const states = ranks.map((own) => own.get(path));
  const without = states.indexOf(undefined);
  if (without !== -1) {
    const rank = states.findIndex((state) => state !== undefined);
    throw ownStateMissing(path, rank, without);
  }
  const values = states.map((state) => state!.value);
  const isAlone = states[0]!.kind === 'stream' && ranks.length === 1;
  const isShared = !isAlone && values.every((value) => isDeepStrictEqual(value, values[0]));
  return { values: isShared ? values.slice(0, 1) : values, isShared };
}

/**
 * Returns the value for one of `size` ranks. If the number of ranks has changed, generators continue on the
 * ranks that had one, and further ranks get new streams derived from rank 0's. For other values, throws if
 * the number of ranks has changed.
 */
export function valueForRank({ kind, path, values }: StoredPerRank, rank: number, size: number): unknown {
  if (values.length === size || (kind === 'stream' && rank < values.length)) return values[rank];
  if (kind === 'stream') return streamFor(rank, values[0] as StreamState);
  throw ownStateNotForSize(path, values.length, size);
}

/**
 * Returns a stream that no rank has used: its seed is the first 53 bits of SHA-256("<seed> <offset> <rank>")
 * of rank 0's state.
 */
function streamFor(rank: number, { seed, offset }: StreamState): StreamState {
  const hash = createHash('sha256').update(`${seed} ${offset} ${rank}`).digest();
  return { seed: Number(hash.readBigUInt64BE() >> 11n), offset: 0 };
}
