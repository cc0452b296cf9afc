// Starts the ranks of a job, watches them, and ends the job. After a failure the other ranks have 1 or 2 s
// (settleTimes) to report their own failures; then they get SIGTERM, and SIGKILL when the shutdown timeout is over. A
// signal from the user stops the ranks in the same way but without this wait; a second signal kills them at once.

import { openLifeLine } from './life-line.ts';
import type { RankSpec } from './plan.ts';
import { type RankOptions, type RankOutcome, type RankProcess, startRank } from './rank-process.ts';

/** Milliseconds from the failure of a rank until the other ranks are stopped. */
export interface SettleTimes {
  /**
   * After a root cause: long enough for peers to notice the closed connection and report it, also on a host with more
   * processes than cores.
   */
  readonly causeMs: number;
  /** After a secondary failure: the rank with the root cause has yet to report it or to end. */
  readonly secondaryMs: number;
}

export const settleTimes: SettleTimes = { causeMs: 1_000, secondaryMs: 2_000 };

export interface WatchOptions {
  /**
   * Called at once for each failure of a rank. `isSecondary` says that the rank failed because a peer had
   * failed.
   */
  readonly onFailure?: (isSecondary: boolean) => void;
  /** Milliseconds from the first signal to SIGKILL. */
  readonly shutdownTimeoutMs: number;
}

export type JobOptions = RankOptions & WatchOptions;

export interface JobResult {
  /** Outcome of each rank, by rank. */
  readonly outcomes: readonly RankOutcome[];
  readonly startedNs: bigint;
}

export interface Job {
  /**
   * Process ids by rank; this process's id if ranks are threads. Undefined for a rank that could not be
   * started.
   */
  readonly pids: readonly (number | undefined)[];
  /** Resolves when every rank has ended. Never rejects. */
  readonly done: Promise<JobResult>;
  /**
   * Sends all ranks this signal, and SIGKILL after the shutdown timeout, unless they are being stopped
   * already.
   */
  readonly stop: (signal: NodeJS.Signals) => void;
  /** Forwards a signal to all ranks and lets them end. If they are being stopped already, kills them. */
  readonly interrupt: (signal: NodeJS.Signals) => void;
}

/** Starts the ranks of this host as processes. Rejects with ERR_LAUNCH_NO_SHELL if there is no shell. */
export async function startJob(specs: readonly RankSpec[], options: JobOptions): Promise<Job> {
  const lifeLine = await openLifeLine();
  const job = watchRanks(
    (onFailure) => specs.map((spec) => startRank(spec, lifeLine, options, onFailure)),
    options,
  );
  void job.done.then(() => lifeLine.close());
  return job;
}

/** `start` starts the ranks, which call `onFailure` when they fail. */
export function watchRanks(
  start: (onFailure: (isSecondary: boolean) => void) => RankProcess[],
  { onFailure, shutdownTimeoutMs }: WatchOptions,
): Job {
  const startedNs = process.hrtime.bigint();
  let isStopping = false;
  let haveEnded = false;
  let timer: NodeJS.Timeout | undefined;
  let deadlineMs = Number.POSITIVE_INFINITY;

  const ranks = start(settle);

  function stop(signal: NodeJS.Signals): void {
    if (haveEnded) return; // a timer would keep the process alive
    isStopping = true;
    clearTimeout(timer);
    for (const rank of ranks) rank.stop(signal);
    timer = setTimeout(kill, shutdownTimeoutMs);
  }

  function kill(): void {
    for (const rank of ranks) rank.stop('SIGKILL');
  }

  function settle(isSecondary: boolean): void {
    onFailure?.(isSecondary);
    const inMs = isSecondary ? settleTimes.secondaryMs : settleTimes.causeMs;
    if (haveEnded || isStopping || performance.now() + inMs >= deadlineMs) return;
    deadlineMs = performance.now() + inMs;
    clearTimeout(timer);
    timer = setTimeout(stop, inMs, 'SIGTERM');
  }

  async function watch(): Promise<JobResult> {
    const outcomes = await Promise.all(ranks.map((rank) => rank.outcome));
    haveEnded = true;
    clearTimeout(timer);
    return { outcomes, startedNs };
  }

  return {
    pids: ranks.map(({ pid }) => pid),
    done: watch(),
    stop: (signal) => {
      if (!isStopping) stop(signal);
    },
    interrupt: (signal) => {
      if (isStopping) return kill();
      stop(signal);
    },
  };
}
