// Runs the coordinator on the launcher that keeps the store: reads reports, sends orders, and detects launchers that
// send no keep-alive signals.

import type { Store } from '@ringwise/store';
import { Coordinator, type CoordinatorOptions, type Decider } from './coordinator.ts';
import { ElasticCoordinator, type ElasticLimits } from './elastic/elastic-coordinator.ts';
import { endedKey } from './elastic/elastic-keys.ts';
import type { ViewFacts } from './elastic/view-facts.ts';
import { watchViews } from './elastic/view-watch.ts';
import { inbox, Outbox } from './mailbox.ts';
import { failed, finish, type Order, parseReport, type Send } from './messages.ts';
import * as words from './outcomes.ts';

export const coordinatorBox = 'launch/coordinator';
export const boxOf = (id: string) => `launch/to/${id}`;
export const pulseOf = (id: string) => `launch/pulse/${id}`;

export interface KeepAlive {
  readonly everyMs: number;
  /** Number of intervals without a signal after which a launcher counts as lost. */
  readonly attempts: number;
}

export interface Coordination {
  /** Waits until all launchers have read the outcome of the job, but at most `goodbyeMs`. */
  readonly close: () => Promise<void>;
}

/** Further settings of the coordinator of an elastic job. */
export interface ElasticSetup {
  readonly limits: ElasticLimits;
  /** The keys of the job in the store of its ranks. */
  readonly store: Store;
  /** Receives each new view, to show it to users. */
  readonly onView: (view: ViewFacts) => void;
}

/** A coordinator, and its connection with the store of the ranks. */
export interface Deciding {
  readonly coordinator: Decider;
  /** Reads the latest views of the ranks. Called before the coordinator handles the end of a process. */
  readonly refresh?: () => Promise<void>;
  /** Notes that a launcher is lost. */
  readonly lost: (id: string) => void;
  readonly close?: () => Promise<void>;
}

/**
 * Makes a coordinator that sends orders by `send`. Later events reach the coordinator only inside calls of `advance`.
 */
export type Make = (send: Send, advance: (change: () => void) => void) => Deciding;

/**
 * Starts the coordinator of a new job. `keepAlive` is null if there is only one launcher, and `elastic` is null if a
 * lost rank stops all. The caller owns the store and closes it after the coordinator.
 */
export function coordinate(
  store: Store,
  options: CoordinatorOptions,
  keepAlive: KeepAlive | null,
  elastic: ElasticSetup | null = null,
): Coordination {
  const make: Make = elastic
    ? (send, advance) => makeElastic(options, elastic, send, advance)
    : (send) => makePlain(options, send);
  return runCoordinator(store, options.self, keepAlive, make);
}

function makePlain(options: CoordinatorOptions, send: Send): Deciding {
  const coordinator = new Coordinator(options, clockMs(), send);
  return { coordinator, lost: (id) => coordinator.lost(id, clockMs()) };
}

function makeElastic(
  options: CoordinatorOptions,
  { limits, store: ranks, onView }: ElasticSetup,
  send: Send,
  advance: (change: () => void) => void,
): Deciding {
  const coordinator = new ElasticCoordinator({ ...options, ...limits }, clockMs(), send);
  let canMove = false;
  const views = watchViews(ranks, (view) => {
    canMove = view.canMove;
    advance(() => coordinator.viewed(view, clockMs()));
    onView(view);
  });
  return {
    coordinator,
    // If the store is lost, the job ends anyway.
    refresh: () => views.refresh().catch(() => {}),
    lost: (id: string) => {
      const all = coordinator.lost(id, clockMs());
      // If the ranks there can move to another store, they may continue in it, so they do not count as ended.
      if (canMove) return;
      for (const ran of all) {
        ranks.set(endedKey(ran), 'lost with its host').catch(() => {});
      }
    },
    close: views.close,
  };
}

/**
 * Runs a coordinator in a store. `self` is the launcher of this process, which sends no keep-alive signals; null if
 * there is none.
 */
export function runCoordinator(
  store: Store,
  self: string | null,
  keepAlive: KeepAlive | null,
  make: Make,
): Coordination {
  const outbox = new Outbox(store);
  const ended = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  /** Whether the coordinator has thrown, so that its state may be wrong. */
  let isBroken = false;
  const send: Send = (to, order) => void outbox.post(boxOf(to), order);
  const { coordinator, refresh, lost, close } = make(send, advance);

  function rearm(): void {
    clearTimeout(timer);
    const inMs = coordinator.deadlineMs - clockMs();
    if (inMs === Number.POSITIVE_INFINITY) return;
    timer = setTimeout(
      () => advance(() => coordinator.tick(clockMs())),
      Math.max(1, Math.min(inMs, 2 ** 31 - 1)),
    );
  }

  function advance(change: () => void): void {
    if (isBroken) return;
    try {
      change();
      rearm();
    } catch (error) {
      // Without an outcome, all launchers would wait forever.
      isBroken = true;
      clearTimeout(timer);
      for (const id of coordinator.present) send(id, finish(failed(words.cannotDecide(error))));
    }
  }

  async function read(): Promise<void> {
    for await (const report of inbox(store, coordinatorBox, parseReport, ended.signal)) {
      if (report.kind === 'clock') {
        const time: Order = { kind: 'time', ns: `${process.hrtime.bigint()}` };
        void outbox.post(boxOf(report.id), time);
        continue;
      }
      if (report.kind === 'slot-ended') await refresh?.();
      advance(() => coordinator.handle(report, clockMs()));
      if (coordinator.isFinished && coordinator.present.length === 0) return;
    }
  }

  const reading = read().catch(() => {});
  const watching =
    keepAlive && watchPulses(store, keepAlive, coordinator, self, (id) => advance(() => lost(id)));
  rearm();
  return {
    close: async () => {
      const isOver = coordinator.isFinished && coordinator.present.length === 0;
      const patience = setTimeout(() => ended.abort(), isOver ? 0 : goodbyeMs);
      await reading;
      clearTimeout(patience);
      clearTimeout(timer);
      ended.abort();
      clearInterval(watching ?? undefined);
      await close?.();
    },
  };
}

/**
 * Milliseconds that the store stays open for launchers that have not acknowledged the outcome of the job, and that a
 * launcher waits for its acknowledgement to be stored.
 */
export const goodbyeMs = 2_000;

/** Returns the clock of process.hrtime in milliseconds. The times of rank failures are on the same clock. */
export function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * Counts for each launcher for how many intervals in a row its pulse was unchanged, so that the clocks of two hosts
 * need not be compared.
 */
function watchPulses(
  store: Store,
  { everyMs, attempts }: KeepAlive,
  coordinator: Decider,
  self: string | null,
  onLost: (id: string) => void,
): NodeJS.Timeout {
  const seen = new Map<string, { pulse: number; misses: number }>();
  let isLooking = false;
  async function look(): Promise<void> {
    for (const id of coordinator.present) {
      if (id === self) continue; // runs in this process
      const pulse = await store.add(pulseOf(id), 0);
      const last = seen.get(id);
      const misses = last?.pulse === pulse ? last.misses + 1 : 0;
      seen.set(id, { pulse, misses });
      if (misses >= attempts) onLost(id);
    }
  }
  return setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    // The store is served by this process and fails only when it is being closed.
    look()
      .catch(() => {})
      .finally(() => {
        isLooking = false;
      });
  }, everyMs);
}
