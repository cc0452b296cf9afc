// What a rank's program says about its training. The launcher's part of the rank (rank-metrics.ts) leaves a function under
// a shared symbol; so a program may use another copy of this package than the command that started it.

interface BucketTiming {
  /** So long after the first gradient. */
  readonly launchedMs: number;
  /** When it was under way, which may be later than its launch. Null or left out where that is not known. */
  readonly startedMs?: number | null;
  /** Null where it is not known: then it is drawn to the end of the step. */
  readonly communicationMs: number | null;
}

/** What `ddp` takes: the statistics of one step, as model.statistics() of @ringwise/ddp gives them. */
export interface StepTiming {
  /** From the first gradient to the end of backward. */
  readonly backwardMs: number;
  /** From there until all gradients were averaged: what the program waited. */
  readonly exposedMs: number;
  /** When the first gradient was ready, on the clock of performance.now(). Without it the step ends with the report. */
  readonly beganMs?: number;
  readonly buckets?: readonly BucketTiming[];
}

/** Any other names are curves of their own: `accuracy`, `lr`, and so on. */
export interface Metrics {
  /** Default: one more than in the last report. */
  readonly step?: number;
  readonly loss?: number;
  /** What this rank has trained on since its last report. */
  readonly samples?: number;
  /** Null where there are no statistics yet. */
  readonly ddp?: StepTiming | null;
  readonly [name: string]: number | StepTiming | null | undefined;
}

export const metricsSymbol = Symbol.for('ringwise.metrics');

export type Reporter = (metrics: Metrics) => void;

/**
 * Tells the launcher how training goes, for its status line, live page and files. For every step: it costs microseconds,
 * never blocks and never throws. Where nobody reads as fast as the program reports, reports are lost. Does nothing in a
 * process that `ringwise run` has not started.
 */
export function reportMetrics(metrics: Metrics): void {
  (globalThis as { [metricsSymbol]?: Reporter })[metricsSymbol]?.(metrics);
}
