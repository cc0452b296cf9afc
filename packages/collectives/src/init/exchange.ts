// The rendezvous of ranks in a store: each rank writes its payload and waits for one outcome, a single key
// for all. The outcome is decided once, by the first rank that sees all payloads, reaches its deadline, or
// finds a reason why the ranks can never form a group. All ranks that wait or come later get that outcome. So
// no rank connects to peers that have given up, and no rank waits for one that cannot come.
import type { Store } from '@ringwise/store';
import { CollectiveError, type Failure, type Site } from '../errors.ts';
import { arrivedLate, ranksMissing, rankTwice, settingsDiffer } from './errors.ts';

/**
 * Exchanges one small payload between all ranks. Resolves with all payloads in rank order. Collective. Works
 * once per store prefix: wrap the store in another PrefixStore for a second exchange. The keys are deleted
 * when all ranks have their payloads. Rejects with ERR_COLL_INIT if ranks are missing at the first rank's
 * deadline (naming them), if a rank arrives twice, if another rank cannot take part, or if the other ranks gave up
 * before this rank came; and with the store's errors. Errors name the group of `site`, whose ranks these are.
 */
export async function exchange(
  store: Store,
  rank: number,
  size: number,
  payload: Uint8Array,
  timeoutMs: number,
  site: Site | null = null,
): Promise<Uint8Array[]> {
  const met = await meet({ store, rank, size, timeoutMs }, payload);
  if ('payloads' in met) return met.payloads;
  throw new CollectiveError('failure' in met ? met.failure : arrivedLate(rank), site);
}

export interface Meeting {
  readonly store: Store;
  readonly rank: number;
  readonly size: number;
  /** Milliseconds that this rank waits in this rendezvous. */
  readonly timeoutMs: number;
  /** The time that the program has given, for errors, if a part of it has passed. Default: `timeoutMs`. */
  readonly givenMs?: number;
  /** Settings by name that must be equal on all ranks. Compared as each rank arrives. */
  readonly settings?: Settings;
}

export type Settings = Readonly<Record<string, string>>;

/**
 * Outcome of a rendezvous. `isLate`: the other ranks gave up before this rank came, and may be in another
 * rendezvous.
 */
export type Met =
  | { readonly payloads: Uint8Array[] }
  | { readonly isLate: true }
  | { readonly failure: Failure; readonly present: number };

/**
 * Takes part in a rendezvous. Rejects only with the store's errors, and if another process has arrived as this
 * rank.
 */
export async function meet(meeting: Meeting, payload: Uint8Array): Promise<Met> {
  const { store, rank, size, timeoutMs } = meeting;
  const keys = Array.from({ length: size }, (_, other) => `rank/${other}`);
  // A payload in the store means that its rank's settings agree. Written before the comparison, it could let ranks of a
  // smaller world find all their payloads and meet, while this rank waited for ranks that never come.
  let outcome = await conflict(meeting);
  if (outcome === null) {
    const stored = await store.compareSet(`rank/${rank}`, '', payload);
    if (Buffer.compare(stored, payload) !== 0) throw new CollectiveError(rankTwice(rank), null);
    outcome = await outcomeOf(meeting, keys);
  }
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

/**
 * Ends a rendezvous for all ranks that wait in it or come later, with `failure`. Has no effect if it was
 * decided before.
 */
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
  /** `size` is the number of ranks that may come. */
  | {
      readonly kind: 'differ';
      readonly name: string;
      readonly sides: readonly [Side, Side];
      readonly size: number;
    }
  | { readonly kind: 'called off'; readonly failure: Failure };

/**
 * Compares this rank's settings with those of the first rank. If they differ, ends the rendezvous. If the
 * others have met already, without this rank, the outcome is for this rank alone.
 */
async function conflict({ store, rank, size, settings }: Meeting): Promise<Outcome | null> {
  if (settings === undefined) return null;
  const stored = await store.compareSet('settings', '', JSON.stringify({ rank, size, settings }));
  const first = JSON.parse(Buffer.from(stored).toString()) as Meeting & { readonly settings: Settings };
  for (const [name, value] of Object.entries(settings)) {
    const told = String(first.settings[name]);
    if (told === value) continue;
    if (first.rank === rank) throw new CollectiveError(rankTwice(rank), null);
    const sides = [
      { rank: first.rank, value: told },
      { rank, value },
    ] as const;
    const differ = { kind: 'differ', name, sides, size: Math.max(size, first.size) } as const;
    const decided = await decide(store, differ);
    return decided.kind === 'met' ? differ : decided;
  }
  return null;
}

async function outcomeOf(
  { store, timeoutMs, givenMs = timeoutMs }: Meeting,
  keys: readonly string[],
): Promise<Outcome> {
  // The last rank to come sees all payloads, because each rank writes its own before it looks.
  if (await store.check(keys)) return await decide(store, { kind: 'met' });
  try {
    return read(await store.get('outcome', { timeoutMs }));
  } catch (cause) {
    const missing = await missingRanks(store, keys, cause);
    return await decide(
      store,
      missing.length === 0 ? { kind: 'met' } : { kind: 'given up', missing, timeoutMs: givenMs },
    );
  }
}

/** Proposes an outcome. Returns the first proposal, which is the one that counts. */
async function decide(store: Store, outcome: Outcome): Promise<Outcome> {
  return read(await store.compareSet('outcome', '', JSON.stringify(outcome)));
}

function read(bytes: Uint8Array): Outcome {
  return JSON.parse(Buffer.from(bytes).toString()) as Outcome;
}

/**
 * Returns the ranks that have not come, after waiting has failed. Throws `cause` if the store does not
 * answer.
 */
async function missingRanks(store: Store, keys: readonly string[], cause: unknown): Promise<number[]> {
  try {
    const isThere = await Promise.all(keys.map((key) => store.check([key])));
    return keys.flatMap((_, rank) => (isThere[rank] ? [] : [rank]));
  } catch {
    throw cause;
  }
}

/** Deletes the keys when the last rank has read them: a long-lived store must not grow with each group. */
async function forget(store: Store, keys: readonly string[]): Promise<void> {
  await Promise.all([...keys, 'settings', 'outcome', 'read'].map((key) => store.delete(key)));
}
