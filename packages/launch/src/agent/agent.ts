// Starts the ranks of a job, watches them, and ends it: after a failure the others get a moment to report their own,
// then SIGTERM, and SIGKILL when the shutdown timeout is over. A signal from the user takes the same way without the
// moment; a second one kills at once.

import { openLifeLine } from './life-line.ts';
import type { RankSpec } from './plan.ts';
import { type RankOptions, type RankOutcome, type RankProcess, startRank } from './rank-process.ts';

/** From the failure of a rank to the end of the others. */
export interface SettleTimes {
  /** After a cause: long enough for peers to notice a closed connection and say so. */
  readonly causeMs: number;
  /** After what was only a peer's echo: somewhere is a cause, on its way or still dying. */
  readonly echoMs: number;
}

export const settleTimes: SettleTimes = { causeMs: 500, echoMs: 2_000 };

export interface WatchOptions {
  /** Called at each failure of a rank, at once. Secondary: it says that a peer failed before it. */
  readonly onFailure?: (isSecondary: boolean) => void;
  /** From the first signal to SIGKILL. */
  readonly shutdownTimeoutMs: number;
}

export type JobOptions = RankOptions & WatchOptions;

export interface JobResult {
  /** One for each rank, in order. */
  readonly outcomes: readonly RankOutcome[];
  /** The signal of the first interrupt(), if it came before anything failed. */
  readonly interruptedBy: NodeJS.Signals | null;
  readonly startedNs: bigint;
}

export interface Job {
  /** Of its processes, by rank; that of this process where ranks are threads. Undefined: could not be started. */
  readonly pids: readonly (number | undefined)[];
  /** Settles when every rank has ended. Never rejects. */
  readonly done: Promise<JobResult>;
  /** Ends all ranks, if they are not ending already: this signal, and SIGKILL after the shutdown timeout. */
  readonly stop: (signal: NodeJS.Signals) => void;
  /** Passes a signal to all ranks and lets them end; called while they are ending, it kills them. */
  readonly interrupt: (signal: NodeJS.Signals) => void;
}

export async function startJob(specs: readonly RankSpec[], options: JobOptions): Promise<Job> {
  const lifeLine = await openLifeLine();
  const job = watchRanks(
    (onFailure) => specs.map((spec) => startRank(spec, lifeLine, options, onFailure)),
    options,
  );
  void job.done.then(() => lifeLine.close());
  return job;
}

/** `start` starts the ranks, which tell of their failures. */
export function watchRanks(
  start: (onFailure: (isSecondary: boolean) => void) => RankProcess[],
  { onFailure, shutdownTimeoutMs }: WatchOptions,
): Job {
  const startedNs = process.hrtime.bigint();
  let hasFailed = false;
  let isStopping = false;
  let interruptedBy: NodeJS.Signals | null = null;
  let timer: NodeJS.Timeout | undefined;
  let deadlineMs = Number.POSITIVE_INFINITY;

  const ranks = start(settle);

  function stop(signal: NodeJS.Signals): void {
    isStopping = true;
    clearTimeout(timer);
    for (const rank of ranks) rank.stop(signal);
    timer = setTimeout(kill, shutdownTimeoutMs);
  }

  function kill(): void {
    for (const rank of ranks) rank.stop('SIGKILL');
  }

  function settle(isSecondary: boolean): void {
    hasFailed = true;
    onFailure?.(isSecondary);
    const inMs = isSecondary ? settleTimes.echoMs : settleTimes.causeMs;
    if (isStopping || performance.now() + inMs >= deadlineMs) return;
    deadlineMs = performance.now() + inMs;
    clearTimeout(timer);
    timer = setTimeout(stop, inMs, 'SIGTERM');
  }

  async function watch(): Promise<JobResult> {
    const outcomes = await Promise.all(ranks.map((rank) => rank.outcome));
    clearTimeout(timer);
    return { outcomes, interruptedBy, startedNs };
  }

  return {
    pids: ranks.map(({ pid }) => pid),
    done: watch(),
    stop: (signal) => {
      if (!isStopping) stop(signal);
    },
    interrupt: (signal) => {
      if (isStopping) return kill();
      if (!hasFailed) interruptedBy = signal;
      stop(signal);
    },
  };
}
