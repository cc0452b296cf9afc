// Derives statistics from the times of a step: how long backward took, when buckets were launched, and how
// much communication did not overlap with backward.
import { byteSize, type Group } from '@ringwise/collectives';
import type { BucketPlan } from '../reducer/plan.ts';
import type { StepTimes } from './timeline.ts';

/** Times of one bucket in an averaged backward, in milliseconds from its start. */
export interface BucketStatistics {
  /** Position among the buckets, which is the order of communication. */
  readonly index: number;
  /** Size of the bucket. */
  readonly bytes: number;
  /** Names of the bucket's parameters. */
  readonly params: readonly string[];
  /**
   * When its last gradient was final, and when it was launched; milliseconds since the first gradient was
   * ready.
   */
  readonly readyMs: number;
  /** Milliseconds from the start of backward until its communication was started. */
  readonly launchedMs: number;
  /**
   * When its first operation began, in the same milliseconds, and its duration; null if the group's flight
   * recorder does not have the end of that operation (any more), or if a hook started none on the group.
   */
  readonly startedMs: number | null;
  /** Milliseconds that its communication took; null if that is not known. */
  readonly communicationMs: number | null;
}

/** One averaged backward, as this rank saw it. */
export interface StepStatistics {
  /** Number of averaged backwards before it. */
  readonly step: number;
  /** When the first gradient was ready, on the clock of performance.now(). */
  readonly beganMs: number;
  /** Milliseconds from the first gradient to the end of backward. */
  readonly backwardMs: number;
  /**
   * Milliseconds from the end of backward until all gradients were averaged: the time that the program
   * waited.
   */
  readonly exposedMs: number;
  /** Names of the parameters, in the order in which their gradients were final. */
  readonly arrivalOrder: readonly string[];
  /** One entry for each bucket, in the order of communication. */
  readonly buckets: readonly BucketStatistics[];
}

/** `plan` is the plan of that step. */
export function statisticsOf(
  times: StepTimes,
  plan: readonly BucketPlan[],
  names: readonly string[],
  group: Group,
): StepStatistics {
  const { step, beginMs, arrivals, arrivalMs, launchMs, seqs, endMs, doneMs } = times;
  const since = (ms: number) => ms - beginMs;
  const arrivedMs = new Map(arrivals.map((param, i) => [param, since(arrivalMs[i]!)]));
  const spans = new Map<number, { readonly startedMs: number; readonly communicationMs: number }>();
  // The flight record uses the host's monotonic clock, so convert its times to performance.now().
  const originMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  for (const { verb, seq, startedMs, endedMs } of group.flightRecord()) {
    if (verb === 'send' || verb === 'recv' || startedMs === null || endedMs === null) continue;
    spans.set(seq, { startedMs: since(startedMs - originMs), communicationMs: endedMs - startedMs });
  }
  const buckets = launchMs.map((launchedMs, index) => {
    const { slots, dtype, count } = plan[index]!;
    return {
      index,
      bytes: count * byteSize(dtype),
      params: slots.map(({ param }) => names[param]!),
      readyMs: Math.max(0, ...slots.map(({ param }) => arrivedMs.get(param) ?? 0)),
      launchedMs: since(launchedMs),
      ...(spans.get(seqs[index]!) ?? { startedMs: null, communicationMs: null }),
    };
  });
  const arrivalOrder = arrivals.map((param) => names[param]!);
  const exposedMs = doneMs - endMs;
  return { step, beganMs: beginMs, backwardMs: since(endMs), exposedMs, arrivalOrder, buckets };
}
