// Stored results of a benchmark, for `--save` and `--compare`. A row has the ratio of its time to the limit that the
// machine had in the same run (limits.ts), so that a slower machine is no regression.
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { BenchError } from './options.ts';

const format = 'ringwise bench baseline';
const version = 1;

/** A ratio that is larger than the stored one by more than this share is a regression. */
export const tolerance = 0.1;

/** What must be equal for results to be comparable. */
export interface Setting {
  readonly verb: string;
  readonly ranks: number;
  readonly backend: string;
  readonly dtype: string;
  /** Null for verbs that do not reduce. */
  readonly redop: string | null;
  readonly form: 'sync' | 'async';
  readonly alloc: boolean;
}

export interface BaselineRow {
  readonly bytes: number;
  /** p50Us / limitUs. */
  readonly ratio: number;
  readonly p50Us: number;
  readonly limitUs: number;
}

export interface Baseline {
  readonly file: string;
  readonly setting: Setting;
  readonly rows: readonly BaselineRow[];
}

/** Says that a baseline cannot be read, written or compared with; the message is a sentence that says what to do. */
export class BaselineError extends BenchError {
  readonly code = 'ERR_BENCH_BASELINE';
}

const again = (file: string) => `Make it again with --save ${file}.`;
const refuse = (file: string, what: string, next = again(file)) =>
  new BaselineError(`ringwise bench: baseline ${file}: ${what}. ${next}`);

/** Writes the rows. Throws BaselineError if the file cannot be written. */
export function saveBaseline(file: string, setting: Setting, rows: readonly BaselineRow[]): void {
  const head = { ringwise: format, version, ...setting };
  const digits = (_: string, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(6)) : value;
  const lines = rows.map((row) => `    ${JSON.stringify(row, digits)}`).join(',\n');
  writable(file, () => {
    writeFileSync(file, `${JSON.stringify(head, null, 2).slice(0, -2)},\n  "rows": [\n${lines}\n  ]\n}\n`);
  });
}

/** Throws BaselineError if the file cannot be written, so that no measurement is lost. Does not change it. */
export function checkSavable(file: string): void {
  const isThere = existsSync(file);
  writable(file, () => closeSync(openSync(file, 'a')));
  if (!isThere) rmSync(file);
}

function writable(file: string, write: () => void): void {
  try {
    write();
  } catch (error) {
    const what = `it cannot be written: ${(error as Error).message}`;
    throw refuse(file, what, 'Name a file in a folder that exists.');
  }
}

/** Reads and checks a file that saveBaseline() has written. Throws BaselineError. */
export function readBaseline(file: string): Baseline {
  const found = contentOf(file);
  if (found?.ringwise !== format)
    throw refuse(file, `it is no file of ringwise bench --save; expected "ringwise": "${format}"`);
  if (found.version !== version)
    throw refuse(file, `it has version ${JSON.stringify(found.version)}; expected version ${version}`);
  const { verb, ranks, backend, dtype, redop, form, alloc, rows } = found;
  const isRow = (row: unknown) =>
    ['bytes', 'ratio', 'p50Us', 'limitUs'].every((name) => {
      const value = (row as Record<string, unknown> | null)?.[name];
      return Number.isFinite(value) && (value as number) >= 0;
    });
  if (!Array.isArray(rows) || rows.length === 0) throw refuse(file, 'it has no rows');
  const wrong = rows.findIndex((row) => !isRow(row));
  if (wrong >= 0) throw refuse(file, `row ${wrong} lacks bytes, ratio, p50Us or limitUs as a number`);
  return {
    file,
    setting: { verb, ranks, backend, dtype, redop, form, alloc } as Setting,
    rows: rows as BaselineRow[],
  };
}

function contentOf(file: string): Record<string, unknown> | null {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw refuse(file, `it cannot be read: ${(error as Error).message}`, `Make one with --save ${file}.`);
  }
  try {
    return JSON.parse(text) as Record<string, unknown> | null;
  } catch (error) {
    throw refuse(file, `it is not JSON: ${(error as Error).message}`);
  }
}

/** Throws BaselineError if the results of `setting` at these sizes cannot be compared with the baseline. */
export function checkComparable(baseline: Baseline, setting: Setting, sizes: readonly number[]): void {
  const { file, rows } = baseline;
  for (const name of Object.keys(setting) as (keyof Setting)[]) {
    if (baseline.setting[name] === setting[name]) continue;
    const [has, runs] = [baseline.setting[name], setting[name]].map((value) => JSON.stringify(value));
    throw refuse(
      file,
      `its ${name} is ${has}, and this run's is ${runs}`,
      'Compare runs with the same flags.',
    );
  }
  const missing = sizes.filter((bytes) => !rows.some((row) => row.bytes === bytes));
  if (missing.length === 0) return;
  throw refuse(
    file,
    `it has no row for ${missing.join(', ')} bytes`,
    `It has ${rows.map(({ bytes }) => bytes).join(', ')}; choose them by --min, --max and --factor, or save it again.`,
  );
}

/** Returns by how much the row is slower than in the baseline: 1.2 for 20 %. */
export function slowdown(baseline: Baseline, { bytes, ratio }: BaselineRow): number {
  const stored = baseline.rows.find((row) => row.bytes === bytes)!;
  return ratio / Math.max(stored.ratio, Number.MIN_VALUE);
}

/** Returns whether the row is a regression. */
export function isRegression(baseline: Baseline, row: BaselineRow): boolean {
  return slowdown(baseline, row) > 1 + tolerance;
}

/** Returns one line for each regression, which names it, and one line in front of them. */
export function comparisonLines(baseline: Baseline, rows: readonly BaselineRow[]): string[] {
  const slower = rows.filter((row) => isRegression(baseline, row));
  const count = slower.length === 0 ? 'none' : `${slower.length}`;
  return [
    `# compared with ${baseline.file}: ${count} of ${rows.length} sizes slower by more than ${100 * tolerance} %`,
    ...slower.map((row) => {
      const stored = baseline.rows.find(({ bytes }) => bytes === row.bytes)!;
      const times = slowdown(baseline, row).toFixed(2);
      return (
        `# slower: ${baseline.setting.verb} of ${row.bytes} bytes takes ${row.ratio.toFixed(2)} × the machine's limit, ` +
        `in the baseline ${stored.ratio.toFixed(2)} ×: ${times} × as long`
      );
    }),
  ];
}
