// All ranks of a job find each other in the store, compare their settings, and get a part of it for their group.
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
import { type Placement, placementOf, type Seat } from './placement.ts';
import type { Plan } from './plan.ts';

// How long rank 0 keeps hosting the store for ranks that have not left yet.
const graceMs = 2_000;
// How long a rank that cannot take part looks for the others' store, to say so.
const noteMs = 1_000;

export interface Gathering {
  /** Belongs to this group alone. */
  readonly store: Store;
  readonly placement: Placement;
  readonly masterHost: string;
  /** By rank: what names the host that it is on. */
  readonly hosts: readonly string[];
  /** Closes what was opened. If this rank hosts the store and `isPolite`, it lets the others go first. */
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
      // Rank 0 may just be closing the store of an earlier group; it opens a new one when it comes here.
      const isHosted = plan.store.kind === 'tcp' && !plan.store.isServed;
      const isLost = StoreError.isInstance(error) && error.code === 'ERR_STORE_LOST';
      if (!isLost || !isHosted || performance.now() > deadline) throw error;
    }
  }
}

/** protocol, size, backend, host's identity, host's name, nonce, launcher's local rank or nothing, visible devices */
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
    // Numbered, so that the groups of one name meet in order.
    const attempt = await run.add(attemptsKey(plan), 1);
    const store = meetingStore(run, plan, attempt);
    const cards = await swapCards(open, store, mine, site, deadline);
    if (cards === null) continue; // the others have given up this attempt and are in a later one
    return {
      store,
      placement: placementOf(rank, cards.map(seatOf)),
      masterHost: location.kind === 'tcp' ? location.host : (cards[0] as Card)[4],
      hosts: cards.map((card) => card[3]),
      leave: async (isPolite) => {
        if (open.isHosted) await sayGoodbye(store, rank, size, isPolite);
        await open.close();
      },
    };
  }
}

const attemptsKey = ({ name, rank }: Plan) => `${name}/attempts/${rank}`;
const meetingStore = (run: Store, { name }: Plan, attempt: number) =>
  new PrefixStore(`${name}/${attempt}`, run);
const initStore = (store: Store) => new PrefixStore('init', store);

function seatOf([, , , host, , , localRank, devices]: Card): Seat {
  return { host, localRank: localRank === '' ? null : Number(localRank), devices };
}

async function swapCards(
  open: OpenStore,
  store: Store,
  mine: Card,
  site: Site,
  deadline: number,
): Promise<Card[] | null> {
  const { rank, size } = site;
  const settings = { protocol: mine[0], 'world size': mine[1], backend: mine[2] };
  const meeting = { store: initStore(store), rank, size, timeoutMs: leftMs(deadline), settings };
  const met = await meet(meeting, Buffer.from(mine.join('\n')));
  if ('payloads' in met) {
    return met.payloads.map((bytes) => Buffer.from(bytes).toString().split('\n') as unknown as Card);
  }
  if ('isLate' in met) return null;
  // All that have come, or are about to, must learn the same, so rank 0 must not take the store away yet.
  const explained = await explainMissing(new CollectiveError(met.failure, site), open.store, site);
  if (open.isHosted) await sayGoodbye(store, rank, met.present, true);
  throw explained;
}

/**
 * Tells the ranks that wait in this rank's next meeting why it will not come, if their store answers soon. Where this
 * rank is to host the store, it does so until they have heard.
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
    if (open.isHosted) await sayGoodbye(store, rank, size, true);
  } catch (error) {
    // Without a store nobody waits there.
    if (!StoreError.isInstance(error) && !CollectiveError.is(error)) throw error;
  } finally {
    await open?.close();
  }
}

// Ranks that are tasks of one process share it.
let processKey: string | undefined;

/** A second process with the same rank is told so, as are all that wait; and so is one that finds keys of an earlier run. */
async function claimRank(
  open: OpenStore,
  run: Store,
  plan: Plan,
  { group, rank, size }: Site,
): Promise<void> {
  processKey ??= `${randomUUID()} process ${process.pid} on ${hostname()}`;
  const key = `${group}/owner/${rank}`;
  const site = { group, rank, size };
  if (open.taken !== undefined && !(await run.check([key]))) throw open.taken;
  const owner = Buffer.from(await run.compareSet(key, '', processKey)).toString();
  if (owner === processKey) return;
  const [first, second] = [owner, processKey].map((text) => /^\S+ (process \d+ on .*)$/.exec(text)?.[1]);
  // They wait in the meeting that the other one is in, or is about to come to.
  const attempt = Math.max(1, await run.add(attemptsKey(plan), 0));
  if (first !== undefined) {
    await callOff(initStore(meetingStore(run, plan, attempt)), twoOfOneRank(rank, first, second as string));
  }
  throw new CollectiveError(rankTwice(rank, first), site);
}

/** Rank 0 goes after the others, so that nobody loses the store while it is in use; but it does not wait for long. */
async function sayGoodbye(store: Store, rank: number, present: number, isPolite: boolean): Promise<void> {
  const goodbye = async () => {
    try {
      if ((await store.add('goodbyes', 1)) >= present) await store.set('all gone', '');
      if (rank !== 0 || !isPolite) return;
      await store.wait(['all gone'], { timeoutMs: graceMs });
      // Another group of this process may keep the store open for long.
      await Promise.all(['goodbyes', 'all gone'].map((key) => store.delete(key)));
    } catch (error) {
      // At the deadline, or when the store has gone, there is nobody left to wait for.
      if (!StoreError.isInstance(error)) throw error;
    }
  };
  // The network may be what has failed: then the store answers at its own deadline only.
  const timer = new AbortController();
  const grace = sleep(graceMs, undefined, { signal: timer.signal }).catch(() => {});
  await Promise.race([goodbye(), grace]).finally(() => timer.abort());
}

function leftMs(deadline: number): number {
  return Math.max(1, Math.ceil(deadline - performance.now()));
}
