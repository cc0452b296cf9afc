// What is told about ranks while a job runs, by those who start them to those who show them. All of it is JSON and
// travels between launchers as it is. A rank's program writes its own reports, so they are checked before they are used.

/** One report of a rank, as it wrote it. */
export interface SentReport {
  /** When, on the clock of process.hrtime. */
  readonly clockMs: number;
  readonly step: number;
  /** Text where the number is not finite. */
  readonly values: Readonly<Record<string, number | string>>;
  readonly timing?: SentTiming;
}

export interface SentTiming {
  /** The first gradient was ready so long before the report. */
  readonly agoMs: number;
  readonly backwardMs: number;
  readonly exposedMs: number;
  /** Began so long after the first gradient, and ran so long. */
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
      /** By itself, and not because it was told to end. */
      readonly hasFailed: boolean;
    };

export type Observe = (event: RankEvent) => void;

const maxValues = 32;
const maxNameLength = 100;
const maxLineLength = 1 << 16;

/** Null unless the line is a report. */
export function parseReport(line: string): SentReport | null {
  if (line.length > maxLineLength) return null;
  try {
    return checked(JSON.parse(line) as SentReport);
  } catch {
    return null;
  }
}

/** What another launcher forwards; null if it is anything else. */
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
