// All ranks of a job find each other in the store, compare their settings, and get a part of it for their group.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { PrefixStore, type Store, StoreError } from '@ringwise/store';
import { hostId } from './backends/host-address.ts';
import { CollectiveError, type Site } from './errors.ts';
import { rankTwice, settingsDiffer } from './init-errors.ts';
import type { Plan } from './init-plan.ts';
import { type OpenStore, openStore } from './open-store.ts';
import { meet } from './rendezvous.ts';

// How long rank 0 keeps hosting the store for ranks that have not left yet.
const graceMs = 2_000;

export interface Gathering {
  /** Belongs to this group alone. */
  readonly store: Store;
  readonly localRank: number;
  readonly localSize: number;
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
      open = await openStore(plan.place, plan.rank, leftMs(deadline));
      return await gatherIn(open, plan, site, deadline);
    } catch (error) {
      await open?.close();
      // Rank 0 may just be closing the store of an earlier group; it opens a new one when it comes here.
      const isHosted = plan.place.kind === 'tcp' && !plan.place.isServed;
      const isLost = StoreError.isInstance(error) && error.code === 'ERR_STORE_LOST';
      if (!isLost || !isHosted || performance.now() > deadline) throw error;
    }
  }
}

/** protocol, size, backend, host's identity, host's name, nonce */
type Card = readonly [string, string, string, string, string, string];
const protocol = '1';

async function gatherIn(open: OpenStore, plan: Plan, site: Site, deadline: number): Promise<Gathering> {
  const { rank, size, name, backend, place } = plan;
  const mine: Card = [protocol, String(size), backend, hostId(), hostname(), randomUUID()];
  const run = new PrefixStore(plan.runKey, open.store);
  await claimRank(run, site);
  for (;;) {
    // Numbered, so that the groups of one name meet in order.
    const attempt = await run.add(`${name}/attempts/${rank}`, 1);
    const store = new PrefixStore(`${name}/${attempt}`, run);
    const cards = await swapCards(open, store, mine, site, deadline);
    if (cards === null) continue; // the others have given up this attempt and are in a later one
    const hosts = cards.map((card) => card[3]);
    const onThisHost = [...hosts.keys()].filter((other) => hosts[other] === mine[3]);
    return {
      store,
      localRank: plan.localRank ?? onThisHost.indexOf(rank),
      localSize: plan.localSize ?? onThisHost.length,
      masterHost: place.kind === 'tcp' ? place.host : (cards[0] as Card)[4],
      hosts,
      leave: async (isPolite) => {
        if (open.isHosted) await sayGoodbye(store, rank, size, isPolite);
        await open.close();
      },
    };
  }
}

async function swapCards(
  open: OpenStore,
  store: Store,
  mine: Card,
  site: Site,
  deadline: number,
): Promise<Card[] | null> {
  const { rank, size } = site;
  const place = new PrefixStore('init', store);
  let present = size;
  try {
    const payloads = await meet(
      place,
      rank,
      size,
      Buffer.from(mine.join('\n')),
      leftMs(deadline),
      site,
    ).catch((error) => {
      if (CollectiveError.is(error)) present -= error.peers.length;
      throw error;
    });
    if (payloads === null) return null;
    const cards = payloads.map((bytes) => Buffer.from(bytes).toString().split('\n') as unknown as Card);
    compareSettings(cards, site);
    return cards;
  } catch (error) {
    // Those who have come must learn the same, so rank 0 must not take the store away yet.
    if (open.isHosted) await sayGoodbye(store, rank, present, true);
    throw error;
  }
}

function compareSettings(cards: readonly Card[], site: Site): void {
  for (const [index, name] of ['protocol', 'size', 'backend'].entries()) {
    const sideOf = (rank: number) => ({ rank, value: String(cards[rank]?.[index]) });
    const mine = sideOf(site.rank);
    const other = cards.findIndex((_, rank) => sideOf(rank).value !== mine.value);
    if (other !== -1) throw new CollectiveError(settingsDiffer(name, mine, sideOf(other)), site);
  }
}

// Ranks that are tasks of one process share it.
let processKey: string | undefined;

/** A second process with the same rank is told so, and so is one that finds the keys of an earlier run. */
async function claimRank(run: Store, site: Site): Promise<void> {
  processKey ??= randomUUID();
  const owner = await run.compareSet(`${site.group}/owner/${site.rank}`, '', processKey);
  if (Buffer.from(owner).toString() !== processKey) throw new CollectiveError(rankTwice(site.rank), site);
}

/** Rank 0 goes after the others, so that nobody loses the store while it is in use; but it does not wait for long. */
async function sayGoodbye(store: Store, rank: number, present: number, isPolite: boolean): Promise<void> {
  const goodbye = async () => {
    try {
      if ((await store.add('goodbyes', 1)) >= present) await store.set('all gone', '');
      if (rank === 0 && isPolite) await store.wait(['all gone'], { timeoutMs: graceMs });
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
