// How ranks find each other: each writes its own payload to the store and waits for the outcome, one key for all. It is
// decided once, by the first rank that sees all payloads, gives up at its deadline, or finds why the ranks can never
// become a group; and all that wait, or come later, are told the same. So a rank never believes in peers that have gone,
// and no rank waits for one that cannot come.
import type { Store } from '@ringwise/store';
import { CollectiveError, type Failure } from '../errors.ts';
import { arrivedLate, ranksMissing, rankTwice, settingsDiffer } from './errors.ts';

/**
 * Swaps one small payload between all ranks; returns all payloads in rank order. Collective. Once per store prefix:
 * wrap the store in another PrefixStore for a second exchange. When all ranks have their payloads, the keys are deleted.
 * ERR_COLL_INIT names the ranks that are missing at the first rank's deadline, a rank that arrives twice, or tells this
 * rank that the others have given up.
 */
export async function exchange(
  store: Store,
  rank: number,
  size: number,
  payload: Uint8Array,
  timeoutMs: number,
): Promise<Uint8Array[]> {
  const met = await meet({ store, rank, size, timeoutMs }, payload);
  if ('payloads' in met) return met.payloads;
  throw new CollectiveError('failure' in met ? met.failure : arrivedLate(rank), null);
}

export interface Meeting {
  readonly store: Store;
  readonly rank: number;
  readonly size: number;
  readonly timeoutMs: number;
  /** What must be the same on all ranks, by name: compared as each arrives. */
  readonly settings?: Settings;
}

export type Settings = Readonly<Record<string, string>>;

/** What came of a meeting. `isLate`: the others had given up before this rank came, and may be in another meeting. */
export type Met =
  | { readonly payloads: Uint8Array[] }
  | { readonly isLate: true }
  | { readonly failure: Failure; readonly present: number };

/** Throws only what the store throws, and where another rank has this one's number. */
export async function meet(meeting: Meeting, payload: Uint8Array): Promise<Met> {
  const { store, rank, size, timeoutMs } = meeting;
  const keys = Array.from({ length: size }, (_, other) => `rank/${other}`);
  const stored = await store.compareSet(`rank/${rank}`, '', payload);
  if (Buffer.compare(stored, payload) !== 0) throw new CollectiveError(rankTwice(rank), null);
  const outcome = (await conflict(meeting)) ?? (await outcomeOf(meeting, keys));
  switch (outcome.kind) {
    case 'met': {
      const payloads = await store.multiGet(keys, { timeoutMs });
      if ((await store.add('read', 1)) === size) await forget(store, keys);
      return { payloads };
    }
    case 'given up': {
      const { missing } = outcome;
      if (missing.includes(rank)) return { isLate: true };
      return { failure: ranksMissing(missing, size, outcome.timeoutMs), present: size - missing.length };
    }
    case 'differ': {
      const { name, sides } = outcome;
      const [mine, theirs] = sides[1].rank === rank ? [sides[1], sides[0]] : sides;
      return { failure: settingsDiffer(name, mine, theirs), present: outcome.size };
    }
    case 'called off':
      return { failure: outcome.failure, present: size };
  }
}

/** Tells all ranks that wait in a meeting, or come to it later, that it will never be. Harmless when they have met. */
export async function callOff(store: Store, failure: Failure): Promise<void> {
  await decide(store, { kind: 'called off', failure });
}

interface Side {
  readonly rank: number;
  readonly value: string;
}

type Outcome =
  | { readonly kind: 'met' }
  | { readonly kind: 'given up'; readonly missing: readonly number[]; readonly timeoutMs: number }
  /** `size`: how many ranks may come. */
  | {
      readonly kind: 'differ';
      readonly name: string;
      readonly sides: readonly [Side, Side];
      readonly size: number;
    }
  | { readonly kind: 'called off'; readonly failure: Failure };

/** The first rank to come says its settings; each that comes later with others ends the meeting. */
async function conflict({ store, rank, size, settings }: Meeting): Promise<Outcome | null> {
  if (settings === undefined) return null;
  const stored = await store.compareSet('settings', '', JSON.stringify({ rank, size, settings }));
  const first = JSON.parse(Buffer.from(stored).toString()) as Meeting & { readonly settings: Settings };
  for (const [name, value] of Object.entries(settings)) {
    const told = String(first.settings[name]);
    if (told === value) continue;
    const sides = [
      { rank: first.rank, value: told },
      { rank, value },
    ] as const;
    return await decide(store, { kind: 'differ', name, sides, size: Math.max(size, first.size) });
  }
  return null;
}

async function outcomeOf({ store, timeoutMs }: Meeting, keys: readonly string[]): Promise<Outcome> {
  // The last to come sees all others: each writes first and looks then.
  if (await store.check(keys)) return await decide(store, { kind: 'met' });
  try {
    return read(await store.get('outcome', { timeoutMs }));
  } catch (cause) {
    const missing = await missingRanks(store, keys, cause);
    return await decide(
      store,
      missing.length === 0 ? { kind: 'met' } : { kind: 'given up', missing, timeoutMs },
    );
  }
}

/** Proposes an outcome; the first proposal is the one that counts. */
async function decide(store: Store, outcome: Outcome): Promise<Outcome> {
  return read(await store.compareSet('outcome', '', JSON.stringify(outcome)));
}

function read(bytes: Uint8Array): Outcome {
  return JSON.parse(Buffer.from(bytes).toString()) as Outcome;
}

/** Which ranks have not come, after waiting failed. Throws `cause` if the store cannot tell. */
async function missingRanks(store: Store, keys: readonly string[], cause: unknown): Promise<number[]> {
  try {
    const isThere = await Promise.all(keys.map((key) => store.check([key])));
    return keys.flatMap((_, rank) => (isThere[rank] ? [] : [rank]));
  } catch {
    throw cause;
  }
}

/** When the last rank has read: a store that serves for long must not grow with each group. */
async function forget(store: Store, keys: readonly string[]): Promise<void> {
  await Promise.all([...keys, 'settings', 'outcome', 'read'].map((key) => store.delete(key)));
}
