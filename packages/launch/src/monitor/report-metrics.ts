// The API for a rank's program to report metrics. The launcher's code in the rank (rank-metrics.ts) stores a
// function under a shared symbol, so the program may use another copy of this package than the launcher.

interface BucketTiming {
  /** Milliseconds from the first gradient to the launch. */
  readonly launchedMs: number;
  /**
   * Milliseconds from the first gradient to the start of the bucket's operation, which may be later than its
   * launch. Null or absent if unknown.
   */
  readonly startedMs?: number | null;
  /** Duration in milliseconds; null if unknown: then the bucket is drawn to the end of the step. */
  readonly communicationMs: number | null;
}

/** Timing of one step, in milliseconds, as model.statistics() of @ringwise/ddp returns it. */
export interface StepTiming {
  /** From the first gradient to the end of backward. */
  readonly backwardMs: number;
  /** From the end of backward until all gradients were averaged: the time that the program waited. */
  readonly exposedMs: number;
  /**
   * When the first gradient was ready, on the clock of performance.now(). If absent, the step ends with the
   * report.
   */
  readonly beganMs?: number;
  /** Times at which each bucket was launched and averaged. */
  readonly buckets?: readonly BucketTiming[];
}

/**
 * Metrics of one step. Any other names, such as `accuracy` or `lr`, become curves of their own; `valLoss` is drawn
 * beside `loss`.
 */
export interface Metrics {
  /** Number of the step. Default: one more than in the last report. */
  readonly step?: number;
  /** Loss of the step, which the live page draws first. */
  readonly loss?: number;
  /** Number of steps of the whole training. With it, or with `epoch` and `epochs`, viewers show the time left. */
  readonly steps?: number;
  /** Number of the epoch, from 0 on as in a loop; may have a fraction. */
  readonly epoch?: number;
  /** Number of epochs of the whole training. */
  readonly epochs?: number;
  /** Number of samples that this rank has trained on since its last report. */
  readonly samples?: number;
  /** Null if there are no statistics yet. */
  readonly ddp?: StepTiming | null;
  readonly [name: string]: number | StepTiming | null | undefined;
}

export const metricsSymbol = Symbol.for('ringwise.metrics');

export type Reporter = (metrics: Metrics) => void;

/**
 * Reports metrics of this rank to the launcher, for its status line, live page and files. Call it once for every step.
 * It takes microseconds, never blocks and never throws. Reports are lost if the program reports faster than the
 * launcher reads. Does nothing in a process that `ringwise run` has not started.
 */
export function reportMetrics(metrics: Metrics): void {
  (globalThis as { [metricsSymbol]?: Reporter })[metricsSymbol]?.(metrics);
}
