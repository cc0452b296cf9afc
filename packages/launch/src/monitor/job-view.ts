// The state of a running job in bounded memory, from events. The status line, the live page and Prometheus' text are
// made from it. It neither draws nor sends anything itself.

import { stripVTControlCharacters } from 'node:util';
import type { ViewFacts } from '../rendezvous/elastic/view-facts.ts';
import type { Culprit } from '../report/culprit.ts';
import { Curve } from './curve.ts';
import type { RankEvent, SentReport, SentTiming } from './events.ts';
import { Membership } from './membership.ts';
import { Meter } from './meter.ts';
import { Progress } from './progress.ts';
import { Ring } from './ring.ts';

export type RankState = 'running' | 'ended' | 'failed' | 'stopped';

/** One step of a rank, for the timeline. Times are milliseconds since the job started. */
export interface StepSpan {
  readonly rank: number;
  readonly step: number;
  /** Time of the rank's report. */
  readonly atMs: number;
  /** Time since the rank's report before that; null in the first. */
  readonly stepMs: number | null;
  readonly timing: SentTiming | null;
}

/** The end of a job. */
export interface JobEnd {
  readonly exitCode: number;
  readonly text: string | null;
  /** The rank with the root cause; null if no rank failed. */
  readonly culprit: Culprit | null;
  readonly elapsedMs: number;
}

export interface LogLine {
  readonly rank: number;
  /** Number of the line in order of arrival, over all ranks. */
  readonly number: number;
  readonly text: string;
}

export interface RankView {
  readonly rank: number;
  host: string;
  pid: number;
  state: RankState;
  /** Description of the rank's end, such as "exit code 1"; empty while it runs. */
  ending: string;
  /** Number of times that it has been started again. */
  restarts: number;
  /** Step and time of the last report in this round; null before the first. */
  step: number | null;
  reportedMs: number | null;
  /** Time of the first report of its last step. */
  steppedMs: number | null;
  memoryBytes: number | null;
  /** Total of the reported samples, over all rounds. */
  samples: number;
  meter: Meter;
  /** Latest reported values by name. */
  readonly values: Map<string, number>;
  readonly lines: Ring<LogLine>;
  readonly spans: Ring<StepSpan>;
}

const maxCurves = 16;
const keptLines = 200;
const keptSpans = 100;
/** Maximum number of characters of a line that are kept. */
export const maxShownLine = 1_000;
export const throughputCurve = 'samples/s';
/** Values that show the progress of the job; they are not drawn as curves. */
const progressNames: readonly string[] = ['epoch', 'epochs', 'steps'];

export class JobView {
  readonly ranks = new Map<number, RankView>();
  /** Curves by name. x is the step; for the throughput it is the seconds since the start. */
  readonly curves = new Map<string, Curve>();
  readonly #startedMs: number;
  #lineCount = 0;
  worldSize = 0;
  hosts = 0;
  restarts = 0;
  readonly progress = new Progress();
  /** The views of an elastic job; empty in other jobs. */
  readonly membership = new Membership();
  /** Reason for the start of the current ranks; null in the first round. */
  why: string | null = null;
  /** The end of the job; null while it runs. */
  end: JobEnd | null = null;
  /** Called for each new line and step. */
  onLine: (line: LogLine) => void = () => {};
  onSpan: (span: StepSpan) => void = () => {};

  /** `startedMs` is on the clock of process.hrtime, like all times that are passed in. */
  constructor(startedMs: number) {
    this.#startedMs = startedMs;
  }

  elapsedMs(nowMs: number): number {
    return this.end?.elapsedMs ?? nowMs - this.#startedMs;
  }

  /** Notes that all ranks start, for the first time or again. */
  startRound(worldSize: number, hosts: number, round: number, why: string | null): void {
    Object.assign(this, { worldSize, hosts, restarts: round, why });
    for (const rank of this.ranks.keys()) if (rank >= worldSize) this.ranks.delete(rank);
    this.progress.restart();
    for (const [name, curve] of this.curves) if (name !== throughputCurve) curve.resume();
  }

  /** Notes how many ranks and hosts an elastic job has now. */
  resize(worldSize: number, hosts: number): void {
    Object.assign(this, { worldSize, hosts });
  }

  showView(view: ViewFacts, nowMs: number): void {
    this.membership.add(view, this.elapsedMs(nowMs));
  }

  finish(exitCode: number, text: string | null, nowMs: number, culprit: Culprit | null = null): void {
    this.end = { exitCode, text, culprit, elapsedMs: this.elapsedMs(nowMs) };
  }

  handle(event: RankEvent): void {
    if (event.kind === 'started') {
      this.#started(event);
      return;
    }
    const view = this.ranks.get(event.rank);
    if (!view) return;
    if (event.kind === 'report') this.#report(view, event.report);
    else if (event.kind === 'memory') view.memoryBytes = event.bytes;
    else if (event.kind === 'line') this.#line(view, event.text);
    else {
      const { exitCode, signal, hasFailed } = event;
      view.state = exitCode === 0 ? 'ended' : hasFailed ? 'failed' : 'stopped';
      view.ending = exitCode === 0 ? '' : (signal ?? `exit code ${exitCode}`);
      view.meter = new Meter();
    }
  }

  /** The step of the most advanced rank; null before the first report. */
  get step(): number | null {
    const steps = [...this.ranks.values()].flatMap(({ step }) => step ?? []);
    return steps.length === 0 ? null : steps.reduce((a, b) => Math.max(a, b));
  }

  /** Sum over all ranks; null until a rank has reported samples twice. */
  get samplesPerSecond(): number | null {
    const rates = [...this.ranks.values()].flatMap(({ meter }) => meter.perSecond ?? []);
    return rates.length === 0 ? null : rates.reduce((a, b) => a + b);
  }

  /**
   * Adds a point to the throughput curve. Adds none after a rank has ended, because the sum over the others is not the
   * throughput of the job; in an elastic job the others continue training, so it is.
   */
  sampleThroughput(nowMs: number): void {
    const isElastic = this.membership.last !== null;
    if (!isElastic && [...this.ranks.values()].some(({ state }) => state !== 'running')) return;
    const rate = this.samplesPerSecond;
    if (rate !== null) this.#curve(throughputCurve)?.add(this.elapsedMs(nowMs) / 1000, rate);
  }

  #started({ rank, host, pid }: Extract<RankEvent, { kind: 'started' }>): void {
    const known = this.ranks.get(rank);
    const fresh = {
      host,
      pid,
      state: 'running' as const,
      ending: '',
      reportedMs: null,
      steppedMs: null,
      step: null,
      memoryBytes: null,
      meter: new Meter(),
    };
    if (known) Object.assign(known, fresh, { restarts: known.restarts + 1 });
    else {
      this.ranks.set(rank, {
        ...fresh,
        rank,
        restarts: 0,
        samples: 0,
        values: new Map(),
        lines: new Ring(keptLines),
        spans: new Ring(keptSpans),
      });
    }
  }

  #report(view: RankView, { clockMs, step, values, timing }: SentReport): void {
    // A second report of a step, such as that of a validation, does not count as another step.
    const isStep = step !== view.step || timing !== undefined;
    const stepMs = view.steppedMs === null ? null : clockMs - view.steppedMs;
    view.step = step;
    view.reportedMs = clockMs;
    if (isStep) view.steppedMs = clockMs;
    const numberOf = (name: string) => (values[name] === undefined ? undefined : Number(values[name]));
    const [epoch, epochs, steps] = progressNames.map(numberOf);
    this.progress.add({ step, epoch, epochs, steps }, clockMs);
    for (const [name, sent] of Object.entries(values)) {
      const value = Number(sent);
      if (progressNames.includes(name)) continue;
      if (name === 'samples') {
        if (!Number.isFinite(value)) continue;
        view.samples += value;
        view.meter.add(clockMs, value);
        continue;
      }
      const curve = this.#curve(name);
      if (!curve) continue;
      view.values.set(name, value);
      curve.add(step, value, view.rank);
    }
    if (!isStep) return;
    const span = { rank: view.rank, step, atMs: clockMs - this.#startedMs, stepMs, timing: timing ?? null };
    view.spans.push(span);
    this.onSpan(span);
  }

  #line(view: RankView, text: string): void {
    const line = {
      rank: view.rank,
      number: this.#lineCount++,
      text: stripVTControlCharacters(text).slice(0, maxShownLine),
    };
    view.lines.push(line);
    this.onLine(line);
  }

  /** Returns the curve of that name; null if there are too many names. */
  #curve(name: string): Curve | null {
    const known = this.curves.get(name);
    if (known || this.curves.size >= maxCurves) return known ?? null;
    const curve = new Curve(name === throughputCurve ? 0.5 : 1);
    this.curves.set(name, curve);
    return curve;
  }
}
