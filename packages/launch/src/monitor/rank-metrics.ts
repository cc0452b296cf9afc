// The rank's end of the pipe that carries metrics to its launcher, as lines of JSON. Reports are buffered briefly, so
// that a step of a millisecond does not need a system call of its own. Writing never blocks: data that the pipe does
// not accept is kept, up to a limit, for the next attempt. A program that never returns to the event loop also sends
// its reports: with a later report, or at its exit.

import { writeSync } from 'node:fs';
import type { SentReport, SentTiming } from './events.ts';
import { type Metrics, metricsSymbol, type Reporter, type StepTiming } from './report-metrics.ts';

/** Environment variable with the pipe's descriptor. */
export const METRICS_FD = 'RINGWISE_METRICS_FD';

const gatherMs = 50;
const maxKeptBytes = 1 << 20;
const maxBuckets = 32;
/** Milliseconds for which a rank that exits waits until its launcher has read the last reports. */
const patienceMs = 2_000;

/**
 * Makes reportMetrics() write to this pipe from now on. Returns a function that sends a text for the status line by the
 * same pipe.
 */
export function installMetrics(fd: number): (progress: string) => void {
  let lines = '';
  let kept: Buffer = Buffer.alloc(0);
  let isUnblocked = false;
  let sentMs = Number.NEGATIVE_INFINITY;
  let step = -1;
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    sentMs = performance.now();
    if (!isUnblocked) unblock(fd);
    isUnblocked = true;
    if (kept.length < maxKeptBytes) kept = Buffer.concat([kept, Buffer.from(lines)]);
    lines = '';
    try {
      while (kept.length > 0) kept = kept.subarray(writeSync(fd, kept));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') kept = Buffer.alloc(0);
      else timer = setTimeout(flush, gatherMs).unref();
    }
  }

  const report: Reporter = (metrics) => {
    try {
      step = typeof metrics.step === 'number' ? metrics.step : step + 1;
      lines += `${JSON.stringify(toSent(metrics, step))}\n`;
      if (performance.now() - sentMs >= gatherMs) flush();
      else timer ??= setTimeout(flush, gatherMs).unref();
    } catch {
      // Training continues without monitoring.
    }
  };
  Object.assign(globalThis, { [metricsSymbol]: report });
  process.on('exit', () => {
    if (!lines && kept.length === 0) return;
    flush();
    for (const endMs = sentMs + patienceMs; kept.length > 0 && performance.now() < endMs; flush()) sleep(5);
  });
  return (progress) => {
    lines += `${JSON.stringify({ progress })}\n`;
    timer ??= setTimeout(flush, gatherMs).unref();
  };
}

/**
 * Makes the descriptor non-blocking by opening a socket on it. The module is loaded here, so that ranks that
 * report nothing start faster.
 */
function unblock(fd: number): void {
  const { Socket } = process.getBuiltinModule('node:net');
  new Socket({ fd, readable: false, writable: true }).unref();
}

function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Converts metrics for sending. Numbers that JSON cannot represent become text. */
function toSent(metrics: Metrics, step: number): SentReport {
  const values: Record<string, number | string> = {};
  let timing: SentTiming | undefined;
  for (const [name, value] of Object.entries(metrics)) {
    if (value === undefined || value === null) continue;
    if (name === 'ddp' && isTiming(value)) timing = timingOf(value);
    else if (typeof value !== 'number' || name === 'ddp') warnOnce(name, value);
    else if (name !== 'step') values[name] = Number.isFinite(value) ? value : `${value}`;
  }
  const clockMs = Number(process.hrtime.bigint()) / 1e6;
  return { clockMs, step, values, ...(timing && { timing }) };
}

function isTiming(value: unknown): value is StepTiming {
  const { backwardMs, exposedMs } = value as Partial<StepTiming>;
  return typeof backwardMs === 'number' && typeof exposedMs === 'number';
}

const warned = new Set<string>();
/** Maximum number of names that are remembered. */
const maxWarned = 32;

/** Warns once for each name about a value that cannot be drawn. The value is dropped and training continues. */
function warnOnce(name: string, value: unknown): void {
  if (warned.has(name) || warned.size === maxWarned) return;
  warned.add(name);
  const expected = name === 'ddp' ? 'what model.statistics() of @ringwise/ddp returns' : 'a number';
  const got = typeof value === 'object' ? (value?.constructor?.name ?? 'object') : typeof value;
  const isTensor = typeof (value as { readonly item?: unknown } | null)?.item === 'function';
  const next = isTensor ? ' Pass the number of the tensor, item().' : '';
  process.emitWarning(`reportMetrics: ${name} is left out; expected ${expected}, got ${got}.${next}`);
}

/**
 * Converts the timing of a step. A bucket whose end is unknown, for example on a device, ends with the step.
 */
function timingOf({ beganMs, backwardMs, exposedMs, buckets = [] }: StepTiming): SentTiming {
  const endMs = backwardMs + exposedMs;
  const agoMs = beganMs === undefined ? endMs : performance.now() - beganMs;
  const sent = buckets.slice(0, maxBuckets).map(({ launchedMs, startedMs, communicationMs }) => {
    const fromMs = startedMs ?? launchedMs;
    return [fromMs, communicationMs ?? Math.max(endMs - fromMs, 0)] as const;
  });
  return { agoMs, backwardMs, exposedMs, buckets: sent };
}
