// Messages for the live page: first the whole state, then changes in the same form.

import type { CurvePart } from './curve.ts';
import type { JobEnd, JobView, LogLine, StepSpan } from './job-view.ts';
import type { ShownView } from './membership.ts';
import { paceOf } from './pace.ts';
import { Ring } from './ring.ts';

export interface Job {
  readonly title: string;
  /** When the launcher started, in milliseconds since 1970. */
  readonly startedAtMs: number;
  readonly worldSize: number;
  readonly hosts: number;
  readonly restarts: number;
  readonly why: string | null;
  readonly elapsedMs: number;
  readonly step: number | null;
  readonly loss: number | null;
  readonly samplesPerSecond: number | null;
  /** Latest epoch, from 0 on, and the totals; null if no rank reports them. */
  readonly epoch: number | null;
  readonly epochs: number | null;
  readonly steps: number | null;
  /** Completed share of the job, from 0 to 1, and the time left; null while they are unknown. */
  readonly done: number | null;
  readonly etaMs: number | null;
  /** The last views of an elastic job, and how many ranks were lost, left and joined; empty in other jobs. */
  readonly views: readonly ShownView[];
  readonly losses: number;
  readonly leaves: number;
  readonly joins: number;
  readonly end: Omit<JobEnd, 'elapsedMs'> | null;
}

export interface RankRow {
  readonly rank: number;
  readonly host: string;
  readonly pid: number;
  readonly state: string;
  readonly ending: string;
  readonly restarts: number;
  readonly step: number | null;
  /** Number of steps behind the most advanced rank. */
  readonly behind: number | null;
  /** Time since the rank's last report; null if it has not reported or does not run. */
  readonly silentMs: number | null;
  /** Time of one step, and the part of it that the rank waited for gradients; means over the last steps. */
  readonly stepMs: number | null;
  readonly waitMs: number | null;
  readonly memoryBytes: number | null;
  readonly samplesPerSecond: number | null;
}

export interface Message {
  /** True if the reader must discard its state first. */
  readonly isWhole: boolean;
  readonly job: Job;
  readonly ranks: readonly RankRow[];
  readonly curves: Readonly<Record<string, CurvePart>>;
  readonly lines: readonly LogLine[];
  readonly spans: readonly StepSpan[];
}

const maxNewLines = 2_000;
const maxNewSpans = 2_000;

export class Feed {
  readonly #view: JobView;
  readonly #title: string;
  readonly #startedAtMs = Date.now();
  readonly #newLines = new Ring<LogLine>(maxNewLines);
  readonly #newSpans = new Ring<StepSpan>(maxNewSpans);

  constructor(view: JobView, title: string) {
    this.#view = view;
    this.#title = title;
    view.onLine = (line) => this.#newLines.push(line);
    view.onSpan = (span) => this.#newSpans.push(span);
  }

  /** Returns the whole state, for a new reader. */
  whole(nowMs: number): Message {
    const ranks = [...this.#view.ranks.values()];
    return {
      ...this.#present(nowMs),
      isWhole: true,
      curves: Object.fromEntries([...this.#view.curves].map(([name, curve]) => [name, curve.read()])),
      lines: ranks.flatMap(({ lines }) => lines.items).sort((a, b) => a.number - b.number),
      spans: ranks.flatMap(({ spans }) => spans.items),
    };
  }

  /** Returns the changes since the last call, for readers that have received everything before. */
  changes(nowMs: number): Message {
    const lines = this.#newLines.items;
    const spans = this.#newSpans.items;
    this.#newLines.clear();
    this.#newSpans.clear();
    const curves = [...this.#view.curves].flatMap(([name, curve]): [string, CurvePart][] => {
      const part = curve.takeChanges();
      return part ? [[name, part]] : [];
    });
    return { ...this.#present(nowMs), isWhole: false, curves: Object.fromEntries(curves), lines, spans };
  }

  #present(nowMs: number): { readonly job: Job; readonly ranks: readonly RankRow[] } {
    const view = this.#view;
    const { worldSize, hosts, restarts, why, step, samplesPerSecond } = view;
    const loss = finite(view.curves.get('loss')?.last);
    const end = view.end && { exitCode: view.end.exitCode, text: view.end.text, culprit: view.end.culprit };
    const elapsedMs = view.elapsedMs(nowMs);
    const rows = [...view.ranks.values()].map(
      (rank): RankRow => ({
        rank: rank.rank,
        host: rank.host,
        pid: rank.pid,
        state: rank.state,
        ending: rank.ending,
        restarts: rank.restarts,
        step: rank.step,
        behind: rank.step === null || step === null ? null : step - rank.step,
        silentMs: rank.reportedMs === null || rank.state !== 'running' ? null : nowMs - rank.reportedMs,
        ...paceOf(rank.spans.items),
        memoryBytes: rank.memoryBytes,
        samplesPerSecond: rank.meter.perSecond,
      }),
    );
    const { epoch, epochs, steps, done } = view.progress;
    const etaMs = end ? null : view.progress.etaMs(nowMs);
    const about = { title: this.#title, startedAtMs: this.#startedAtMs, worldSize, hosts, restarts, why };
    const { views, losses, leaves, joins } = view.membership;
    const changes = { views, losses, leaves, joins };
    const far = { elapsedMs, step, epoch, epochs, steps, done, etaMs };
    return {
      job: { ...about, ...far, ...changes, loss, samplesPerSecond, end },
      ranks: rows.sort((a, b) => a.rank - b.rank),
    };
  }
}

const finite = (value: number | null | undefined) => (Number.isFinite(value) ? value! : null);
