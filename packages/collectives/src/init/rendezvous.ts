// The rendezvous of a job: all ranks meet in the store, compare settings, and get a part of the store for
// their group.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { PrefixStore, type Store, StoreError } from '@ringwise/store';
import { hostId } from '../backends/host-address.ts';
import { CollectiveError, type Failure, type Site } from '../errors.ts';
import { rankTwice, twoOfOneRank } from './errors.ts';
import { callOff, meet } from './exchange.ts';
import { explainMissing } from './foreign-ranks.ts';
import { type OpenStore, openStore } from './open-store.ts';
import { type HostInfo, type Placement, placementOf } from './placement.ts';
import type { Plan } from './plan.ts';

// Time that rank 0 keeps serving the store for ranks that have not left yet.
const graceMs = 2_000;
// Time that a rank that cannot take part waits for the others, so that it can tell them: rank 0 for them to come to its
// store, the others for rank 0 to open it. Ranks of one job start seconds apart on a busy machine, and a rank that was
// not told waits until its deadline.
const noteMs = 5_000;
// Time that rank 0 waits at a store that another process opened at its address, until it counts that process as no part
// of its job.
const claimMs = 2_000;

export interface Gathering {
  /** Part of the store that only this group uses. */
  readonly store: Store;
  readonly placement: Placement;
  /** Host name or address of the store's host, or rank 0's host name if the store has no address. */
  readonly masterHost: string;
  /** Id of each rank's host, by rank. */
  readonly hosts: readonly string[];
  /**
   * Closes the store. If this rank serves it and `isPolite` is true, waits briefly for the other ranks to
   * leave first.
   */
  readonly leave: (isPolite: boolean) => Promise<void>;
}

export async function gather(plan: Plan, site: Site): Promise<Gathering> {
  const deadline = performance.now() + plan.timeoutMs;
  for (;;) {
    let open: OpenStore | undefined;
    try {
      open = await openStore(plan.store, plan.rank, leftMs(deadline));
      return await gatherIn(open, plan, site, deadline);
    } catch (error) {
      await open?.close();
      // Rank 0 may be closing the store of an earlier group; it opens a new one for this group.
      const isHosted = plan.store.kind === 'tcp' && !plan.store.isServed;
      const isLost = StoreError.isInstance(error) && error.code === 'ERR_STORE_LOST';
      if (!isLost || !isHosted || performance.now() > deadline) throw error;
    }
  }
}

/**
 * What each rank exchanges: protocol, size, backend, host id, host name, nonce, launcher's local rank or '',
 * visible devices.
 */
type Card = readonly [string, string, string, string, string, string, string, string];
const protocol = '2';

async function gatherIn(open: OpenStore, plan: Plan, site: Site, deadline: number): Promise<Gathering> {
  const { rank, size, backend, store: location } = plan;
  const local = plan.localRank === null ? '' : String(plan.localRank);
  const devices = process.env.CUDA_VISIBLE_DEVICES ?? '';
  const mine: Card = [protocol, String(size), backend, hostId(), hostname(), randomUUID(), local, devices];
  const run = new PrefixStore(plan.runKey, open.store);
  await claimRank(open, run, plan, site);
  for (;;) {
    // Attempts are numbered, so that groups of the same name meet in order.
    const attempt = await run.add(attemptsKey(plan), 1);
    const store = meetingStore(run, plan, attempt);
    const cards = await swapCards(open, store, mine, site, deadline, plan.timeoutMs);
    if (cards === null) continue; // the others have given up this attempt and are in a later one
    return {
      store,
      placement: placementOf(rank, cards.map(hostInfoOf)),
      masterHost: location.kind === 'tcp' ? location.host : (cards[0] as Card)[4],
      hosts: cards.map((card) => card[3]),
      leave: async (isPolite) => {
        if (open.isHosted) await sayGoodbye(store, rank, size, isPolite ? graceMs : 0);
        await open.close();
      },
    };
  }
}

const attemptsKey = ({ name, rank }: Plan) => `${name}/attempts/${rank}`;
const meetingStore = (run: Store, { name }: Plan, attempt: number) =>
  new PrefixStore(`${name}/${attempt}`, run);
const initStore = (store: Store) => new PrefixStore('init', store);

function hostInfoOf([, , , host, , , localRank, devices]: Card): HostInfo {
  return { host, localRank: localRank === '' ? null : Number(localRank), devices };
}

async function swapCards(
  open: OpenStore,
  store: Store,
  mine: Card,
  site: Site,
  deadline: number,
  givenMs: number,
): Promise<Card[] | null> {
  const { rank, size } = site;
  const settings = { protocol: mine[0], 'world size': mine[1], backend: mine[2] };
  const meeting = { store: initStore(store), rank, size, timeoutMs: leftMs(deadline), givenMs, settings };
  const met = await meet(meeting, Buffer.from(mine.join('\n')));
  if ('payloads' in met) {
    return met.payloads.map((bytes) => Buffer.from(bytes).toString().split('\n') as unknown as Card);
  }
  if ('isLate' in met) return null;
  // Ranks that are still coming must get the same outcome, so rank 0 keeps the store open for them.
  const explained = await explainMissing(new CollectiveError(met.failure, site), open.store, site);
  if (open.isHosted) await sayGoodbye(store, rank, met.present, graceMs);
  throw explained;
}

/**
 * Tells the ranks in this rank's next rendezvous why it will not come, if the store answers soon. If this
 * rank should serve the store, it serves it until the others have read the message.
 */
export async function tellOthers(plan: Plan, failure: Failure): Promise<void> {
  const { rank, size, store: location } = plan;
  if (location.kind === 'nowhere' || !Number.isSafeInteger(rank) || rank < 0) return;
  let open: OpenStore | undefined;
  try {
    open = await openStore(location, rank, noteMs);
    if (open.taken !== undefined) return;
    const run = new PrefixStore(plan.runKey, open.store);
    const store = meetingStore(run, plan, await run.add(attemptsKey(plan), 1));
    await callOff(initStore(store), failure);
    if (open.isHosted) await sayGoodbye(store, rank, size, noteMs);
  } catch (error) {
    // If there is no store, no rank waits in it.
    if (!StoreError.isInstance(error) && !CollectiveError.is(error)) throw error;
  } finally {
    await open?.close();
  }
}

// Identifies this thread of this process. All groups that the thread makes share it.
let processKey: string | undefined;

/**
 * Claims this rank for this thread. If another process or thread has claimed it, ends the rendezvous for all waiting
 * ranks and throws; this also detects keys of an earlier run.
 */
async function claimRank(
  open: OpenStore,
  run: Store,
  plan: Plan,
  { group, rank, size }: Site,
): Promise<void> {
  processKey ??= `${randomUUID()} process ${process.pid} on ${hostname()}`;
  const key = `${group}/owner/${rank}`;
  const site = { group, rank, size };
  if (open.taken !== undefined && !(await isClaimed(run, key))) throw open.taken;
  const owner = Buffer.from(await run.compareSet(key, '', processKey)).toString();
  if (owner === processKey) return;
  const [first, second] = [owner, processKey].map((text) => /^\S+ (process \d+ on .*)$/.exec(text)?.[1]);
  // The waiting ranks are in the other process's current or next rendezvous.
  const attempt = Math.max(1, await run.add(attemptsKey(plan), 0));
  if (first !== undefined) {
    await callOff(initStore(meetingStore(run, plan, attempt)), twoOfOneRank(rank, first, second as string));
  }
  throw new CollectiveError(rankTwice(rank, first), site);
}

/**
 * Tells whether a process has claimed a rank. Waits for it, since a process that opened the store a moment ago has not
 * claimed its rank yet.
 */
async function isClaimed(run: Store, key: string): Promise<boolean> {
  try {
    await run.wait([key], { timeoutMs: claimMs });
    return true;
  } catch (error) {
    if (!StoreError.isInstance(error) || error.code !== 'ERR_STORE_TIMEOUT') throw error;
    return false;
  }
}

/**
 * Counts this rank as done with the store. Rank 0 waits up to `waitMs` until `present` ranks are done, so that none
 * loses the store while it is in use.
 */
async function sayGoodbye(store: Store, rank: number, present: number, waitMs: number): Promise<void> {
  const goodbye = async () => {
    try {
      if ((await store.add('goodbyes', 1)) >= present) await store.set('all gone', '');
      if (rank !== 0 || waitMs === 0) return;
      await store.wait(['all gone'], { timeoutMs: waitMs });
      // Another group of this process may keep the store open for a long time.
      await Promise.all(['goodbyes', 'all gone'].map((key) => store.delete(key)));
    } catch (error) {
      // At the deadline, or when the store is gone, there are no ranks to wait for.
      if (!StoreError.isInstance(error)) throw error;
    }
  };
  // If the network has failed, the store answers only at its own deadline, so limit the wait here.
  const timer = new AbortController();
  const grace = sleep(Math.max(waitMs, graceMs), undefined, { signal: timer.signal }).catch(() => {});
  await Promise.race([goodbye(), grace]).finally(() => timer.abort());
}

function leftMs(deadline: number): number {
  return Math.max(1, Math.ceil(deadline - performance.now()));
}
