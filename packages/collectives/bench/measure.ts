// How long a call takes. All ranks make the same calls in the same order, so everything that decides how many calls
// follow is agreed on first.
import type { Group } from '../src/group/group.ts';

export interface Timing {
  /** Timed calls. */
  readonly iters: number;
  /** Microseconds: median over the calls of the slowest rank's time. */
  readonly p50Us: number;
  /** All calls together, over their number; of the slowest rank. */
  readonly meanUs: number;
}

/** Makes `calls` calls, one after the other. */
export type Caller = (calls: number) => void | Promise<void>;

/** Samples below this are mostly clock. */
const shortestSampleMs = 0.01;
const maxSamples = 20_000;

/** `isFirst` takes longer: the compiler has not seen the code yet. */
export async function measure(
  group: Group,
  call: Caller,
  seconds: number,
  isFirst: boolean,
): Promise<Timing> {
  // Warms up, and finds out how many calls fit into the time: rounds of more and more calls, until one is long enough.
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

/** Milliseconds per call. */
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
