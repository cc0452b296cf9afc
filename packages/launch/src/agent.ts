// Starts the ranks of a job, watches them, and ends it: at the first failure the others get a moment to report
// their own, then SIGTERM, and SIGKILL when the shutdown timeout is over. A signal from the user takes the same
// way without the moment; a second one kills at once.

import { openLifeLine } from './life-line.ts';
import type { RankSpec } from './plan.ts';
import { type RankOptions, type RankOutcome, startRank } from './rank-process.ts';

/** After the first failure: long enough for peers to notice a closed connection and say so. */
export const settleMs = 500;

export interface JobOptions extends RankOptions {
  /** Called at the first failure of a rank, at once. */
  readonly onFailure?: () => void;
  /** From the first signal to SIGKILL. */
  readonly shutdownTimeoutMs: number;
}

export interface JobResult {
  /** One for each rank, in order. */
  readonly outcomes: readonly RankOutcome[];
  /** The signal of the first interrupt(), if it came before anything failed. */
  readonly interruptedBy: NodeJS.Signals | null;
  readonly startedNs: bigint;
}

export interface Job {
  /** Settles when every rank has ended. Never rejects. */
  readonly done: Promise<JobResult>;
  /** Ends all ranks, if they are not ending already: this signal, and SIGKILL after the shutdown timeout. */
  readonly stop: (signal: NodeJS.Signals) => void;
  /** Passes a signal to all ranks and lets them end; called while they are ending, it kills them. */
  readonly interrupt: (signal: NodeJS.Signals) => void;
}

export async function startJob(specs: readonly RankSpec[], options: JobOptions): Promise<Job> {
  const lifeLine = await openLifeLine();
  const startedNs = process.hrtime.bigint();
  let hasFailed = false;
  let isStopping = false;
  let interruptedBy: NodeJS.Signals | null = null;
  let timer: NodeJS.Timeout | undefined;

  const ranks = specs.map((spec) => startRank(spec, lifeLine, options, settle));

  function stop(signal: NodeJS.Signals): void {
    isStopping = true;
    clearTimeout(timer);
    for (const rank of ranks) rank.stop(signal);
    timer = setTimeout(kill, options.shutdownTimeoutMs);
  }

  function kill(): void {
    for (const rank of ranks) rank.stop('SIGKILL');
  }

  function settle(): void {
    if (hasFailed) return;
    hasFailed = true;
    options.onFailure?.();
    if (!isStopping) timer = setTimeout(stop, settleMs, 'SIGTERM');
  }

  async function watch(): Promise<JobResult> {
    const outcomes = await Promise.all(ranks.map((rank) => rank.outcome));
    clearTimeout(timer);
    lifeLine.close();
    return { outcomes, interruptedBy, startedNs };
  }

  return {
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
