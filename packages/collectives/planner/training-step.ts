// The model of a data-parallel step. Backward makes the gradients at an even rate, the last layer's first. A bucket is
// ready when backward has made its bytes, and starts when the bucket before it has ended; the step ends when both
// backward and the last bucket have ended. Forward and optimiser come before backward here: only the sum counts.

/** Limit of the first bucket, which `ddp()` keeps small so that communication starts early. */
const firstBucketBytes = 2 ** 20;

/** Returns the bytes of each bucket in the order of their start, if parameters are small compared with a bucket. */
export function bucketsOf(gradientBytes: number, bucketBytes: number): number[] {
  const buckets: number[] = [];
  let left = gradientBytes;
  while (left > 0) {
    const limit = buckets.length === 0 ? Math.min(firstBucketBytes, bucketBytes) : bucketBytes;
    buckets.push(Math.min(limit, left));
    left -= buckets.at(-1)!;
  }
  return buckets;
}

/** When one bucket is ready, starts and ends, in milliseconds since the beginning of the step. */
export interface BucketTime {
  readonly bytes: number;
  readonly readyMs: number;
  readonly startMs: number;
  readonly endMs: number;
}

export interface StepTime {
  /** The whole step. */
  readonly stepMs: number;
  /** How long the ranks wait for communication after backward has ended. */
  readonly exposedMs: number;
  /** All operations together, also those that backward hides. */
  readonly communicationMs: number;
  readonly buckets: readonly BucketTime[];
}

/**
 * Returns the times of a step. `aloneMs` is the time of a step without communication, of which backward takes
 * `backwardShare`; `allReduceMs` returns the time of the all-reduce of so many bytes.
 */
export function stepTime(
  buckets: readonly number[],
  aloneMs: number,
  backwardShare: number,
  allReduceMs: (bytes: number) => number,
): StepTime {
  const total = buckets.reduce((sum, bytes) => sum + bytes, 0);
  const backwardMs = aloneMs * backwardShare;
  const times: BucketTime[] = [];
  let made = 0;
  let communicationMs = 0;
  for (const bytes of buckets) {
    made += bytes;
    const readyMs = aloneMs - backwardMs * (1 - made / total);
    const startMs = Math.max(readyMs, times.at(-1)?.endMs ?? 0);
    const takesMs = allReduceMs(bytes);
    communicationMs += takesMs;
    times.push({ bytes, readyMs, startMs, endMs: startMs + takesMs });
  }
  const stepMs = Math.max(aloneMs, times.at(-1)?.endMs ?? 0);
  return { stepMs, exposedMs: stepMs - aloneMs, communicationMs, buckets: times };
}
