import type { StepSpan } from './job-view.ts';

const window = 20;

export interface Pace {
  /** Mean time of a step; null before the second report. */
  readonly stepMs: number | null;
  /** The part of it that the rank waited for gradients; null if the program does not report `ddp`. */
  readonly waitMs: number | null;
}

/**
 * Returns the mean step time of a rank over its last steps. If a program reports only every tenth step, each span
 * counts as ten steps.
 */
export function paceOf(spans: readonly StepSpan[]): Pace {
  const last = spans.slice(-window - 1);
  // The first report after a restart has no step before it.
  const begin = last.findLastIndex(({ stepMs }) => stepMs === null);
  const round = last.slice(Math.max(begin, 0));
  const steps = (round.at(-1)?.step ?? 0) - (round[0]?.step ?? 0);
  const stepMs = steps > 0 ? (round.at(-1)!.atMs - round[0]!.atMs) / steps : null;
  const waits = round.flatMap(({ timing }) => timing?.exposedMs ?? []);
  const waitMs = waits.length > 0 ? waits.reduce((a, b) => a + b) / waits.length : null;
  return { stepMs, waitMs };
}
