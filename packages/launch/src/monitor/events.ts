// Events about ranks while a job runs. They are plain data, which launchers send to each other as JSON. A
// rank's program writes its reports itself, so they are checked before use.

/** One report of a rank, as the rank wrote it. */
export interface SentReport {
  /** Time of the report in milliseconds, on the clock of process.hrtime. */
  readonly clockMs: number;
  readonly step: number;
  /** Numbers by name; text for numbers that are not finite. */
  readonly values: Readonly<Record<string, number | string>>;
  readonly timing?: SentTiming;
}

export interface SentTiming {
  /** Time from the first gradient to the report. */
  readonly agoMs: number;
  readonly backwardMs: number;
  readonly exposedMs: number;
  /** Start of each bucket after the first gradient, and its duration, in milliseconds. */
  readonly buckets: readonly (readonly [number, number])[];
}

export type RankEvent =
  | { readonly kind: 'started'; readonly rank: number; readonly host: string; readonly pid: number }
  | { readonly kind: 'report'; readonly rank: number; readonly report: SentReport }
  | { readonly kind: 'memory'; readonly rank: number; readonly bytes: number }
  | { readonly kind: 'line'; readonly rank: number; readonly text: string }
  | {
      readonly kind: 'ended';
      readonly rank: number;
      readonly exitCode: number | null;
      readonly signal: string | null;
      /** True if the rank failed by itself; false if it succeeded or was stopped. */
      readonly hasFailed: boolean;
    };

export type Observe = (event: RankEvent) => void;

const maxValues = 32;
const maxNameLength = 100;
const maxLineLength = 1 << 16;

/** Parses a line of a rank; null if it is not a report. */
export function parseReport(line: string): SentReport | null {
  if (line.length > maxLineLength) return null;
  try {
    return checked(JSON.parse(line) as SentReport);
  } catch {
    return null;
  }
}

/** Parses a line of rank 0 with the text of its progress; null if it is not one. */
export function parseProgress(line: string): string | null {
  if (!line.startsWith('{"progress":') || line.length > maxLineLength) return null;
  try {
    const { progress } = JSON.parse(line) as { progress: unknown };
    return typeof progress === 'string' ? progress : null;
  } catch {
    return null;
  }
}

/** Parses events that another launcher forwarded; null if the text is anything else. */
export function parseEvents(text: string): RankEvent[] | null {
  try {
    return (JSON.parse(text) as RankEvent[]).flatMap((event): RankEvent[] => {
      if (!Number.isSafeInteger(event.rank)) return [];
      if (event.kind === 'line') return [{ ...event, text: `${event.text}` }];
      if (event.kind !== 'report') return [event];
      const report = checked(event.report);
      return report ? [{ ...event, report }] : [];
    });
  } catch {
    return null;
  }
}

function checked({ clockMs, step, values, timing }: SentReport): SentReport | null {
  if (!isNumber(step)) return null;
  const numbers: Record<string, number | string> = {};
  for (const [name, value] of Object.entries(values ?? {}).slice(0, maxValues)) {
    if (name.length <= maxNameLength && isValue(value)) numbers[name] = value;
  }
  const now = Number(process.hrtime.bigint()) / 1e6;
  return {
    clockMs: isNumber(clockMs) ? clockMs : now,
    step,
    values: numbers,
    ...(timing && isTiming(timing) && { timing }),
  };
}

const isNumber = (value: unknown): value is number => Number.isFinite(value);

const isValue = (value: unknown) =>
  isNumber(value) || (typeof value === 'string' && ['NaN', 'Infinity', '-Infinity'].includes(value));

function isTiming({ agoMs, backwardMs, exposedMs, buckets }: SentTiming): boolean {
  if (![agoMs, backwardMs, exposedMs].every(isNumber)) return false;
  return Array.isArray(buckets) && buckets.length <= 32 && buckets.flat().every(isNumber);
}
