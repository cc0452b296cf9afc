// Converts the last steps of all ranks to one Chrome trace (chrome://tracing, ui.perfetto.dev): one process
// for each rank, with a track for backward and the time that the program waited, and a track for the buckets.
//
// Processes on one host share the monotonic clock. For other hosts, the offset is the median of several
// differences, measured when all ranks leave a barrier at about the same time.
import { hostname } from 'node:os';
import type { Group } from '@ringwise/collectives';
import type { StepStatistics } from './statistics.ts';

/** The part of Chrome's trace event format that is used here. Times are microseconds. */
export interface DdpTraceEvent {
  /** M: name of a process or track; X: a slice with a duration. */
  readonly ph: 'M' | 'X';
  /** Name of the slice; for M, "process_name" or "thread_name". */
  readonly name: string;
  /** Number of the process in the trace: the rank. */
  readonly pid: number;
  /** Number of the track within the process. */
  readonly tid: number;
  /** Begin of a slice, in microseconds. */
  readonly ts?: number;
  /** Duration of a slice, in microseconds. */
  readonly dur?: number;
  /** What the viewer shows of a slice, or the name of a track. */
  readonly args?: Record<string, unknown>;
}

/** A Chrome trace of averaged backwards, as an object for JSON.stringify(). */
export interface DdpTrace {
  /** The events, in any order. */
  readonly traceEvents: readonly DdpTraceEvent[];
}

/** A step, and when it began on the clock of performance.now(). */
export interface TracedStep {
  readonly beginMs: number;
  readonly statistics: StepStatistics;
}

const backwardTrack = 0;
const bucketTrack = 1;
const barriers = 5;

/** Gathers the trace. Collective. Resolves with the trace on rank 0 and null on the other ranks. */
export async function gatherTrace(steps: readonly TracedStep[], group: Group): Promise<DdpTrace | null> {
  const meetings: number[] = [];
  for (let i = 0; i < barriers; i++) {
    await group.barrier();
    meetings.push(clockMs());
  }
  const originMs = clockMs() - performance.now();
  const ranks = await group.gatherObject({ host: hostname(), meetings, originMs, steps }, { root: 0 });
  if (ranks === null) return null;
  const [first] = ranks as [(typeof ranks)[0]];
  const offsets = ranks.map(({ host, meetings }) =>
    host === first.host ? 0 : median(meetings.map((ms, i) => first.meetings[i]! - ms)),
  );
  const traceEvents = ranks.flatMap(({ host, steps, originMs }, rank) => {
    const toUs = (ms: number) => 1000 * (ms + originMs + offsets[rank]! - first.meetings[0]!);
    return [...namesOf(rank, host), ...steps.flatMap((step) => eventsOf(rank, step, toUs))];
  });
  return { traceEvents };
}

/** Returns the host's monotonic clock in milliseconds. */
function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1]!;
}

function namesOf(pid: number, host: string): DdpTraceEvent[] {
  const name = (what: string, tid: number, text: string): DdpTraceEvent => {
    return { ph: 'M', name: what, pid, tid, args: { name: text } };
  };
  return [
    name('process_name', 0, `rank ${pid} (${host})`),
    name('thread_name', backwardTrack, 'backward'),
    name('thread_name', bucketTrack, 'buckets'),
  ];
}

function eventsOf(
  pid: number,
  { beginMs, statistics }: TracedStep,
  toUs: (ms: number) => number,
): DdpTraceEvent[] {
  const { step, backwardMs, exposedMs, arrivalOrder, buckets } = statistics;
  const slice = (
    tid: number,
    name: string,
    fromMs: number,
    durationMs: number,
    args: Record<string, unknown>,
  ) => {
    const ts = toUs(beginMs + fromMs);
    return { ph: 'X', name, pid, tid, ts, dur: 1000 * durationMs, args } as const;
  };
  const endMs = backwardMs + exposedMs;
  return [
    slice(backwardTrack, `backward ${step}`, 0, backwardMs, { arrivalOrder }),
    slice(backwardTrack, `wait ${step}`, backwardMs, exposedMs, {}),
    ...buckets.map(({ index, launchedMs, startedMs, communicationMs, ...args }) =>
      slice(bucketTrack, `bucket ${index}`, startedMs ?? launchedMs, communicationMs ?? endMs - launchedMs, {
        ...args,
        launchedMs,
      }),
    ),
  ];
}
