// Measures how long a call takes. All ranks must make the same number of calls, so they first agree on
// everything that determines it.
import type { Group } from '../src/group/group.ts';

export interface Timing {
  /** Number of timed calls. */
  readonly iters: number;
  /** Median time in microseconds, over the slowest rank's time of each call. */
  readonly p50Us: number;
  /** Mean time in microseconds: all calls together divided by their number, on the slowest rank. */
  readonly meanUs: number;
}

/** Makes `calls` calls, one after the other. */
export type Caller = (calls: number) => void | Promise<void>;

/** Shorter samples mostly measure the clock. */
const shortestSampleMs = 0.01;
const maxSamples = 20_000;

/**
 * Times `call` on all ranks. Collective. `isFirst` warms up longer, because the code has not been compiled
 * yet.
 */
export async function measure(
  group: Group,
  call: Caller,
  seconds: number,
  isFirst: boolean,
): Promise<Timing> {
  // Warms up and estimates the time of a call: rounds with more and more calls, until one is long enough.
  const warmUpMs = isFirst ? Math.min(seconds * 5000, 500) : seconds * 100;
  let callMs = 0;
  for (let calls = 3, roundMs = 0; roundMs < warmUpMs && calls < 1e6; calls *= 4) {
    callMs = await slowest(group, await timed(call, calls));
    roundMs = callMs * calls;
  }
  const batch = clamp(Math.ceil(shortestSampleMs / callMs), 1, 1000);
  const samples = clamp((seconds * 1000) / (callMs * batch), 7, maxSamples);

  const times = new Float64Array(samples);
  await group.barrier();
  const start = performance.now();
  let before = start;
  for (let i = 0; i < samples; i++) {
    const running = call(batch);
    if (running) await running;
    const now = performance.now();
    times[i] = (now - before) / batch;
    before = now;
  }
  const iters = samples * batch;
  const meanMs = await slowest(group, (before - start) / iters);
  await group.allReduce(times, { op: 'max' });
  times.sort();
  return { iters, p50Us: times[samples >> 1]! * 1000, meanUs: meanMs * 1000 };
}

/** Returns the milliseconds per call. */
async function timed(call: Caller, calls: number): Promise<number> {
  const start = performance.now();
  await call(calls);
  return (performance.now() - start) / calls;
}

async function slowest(group: Group, ms: number): Promise<number> {
  const all = Float64Array.of(ms);
  await group.allReduce(all, { op: 'max' });
  return Math.max(all[0]!, 1e-6);
}

function clamp(value: number, min: number, max: number): number {
  return Math.round(Math.min(Math.max(value, min), max));
}
