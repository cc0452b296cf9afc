// Turns the samples of all runs into medians, ratios, and a table.

import { median } from '../median.ts';
import type { Contender } from './contenders.ts';
import type { Sample } from './measure.ts';

/** Samples of all runs of one verb on one number of ranks: by contender, then by size in bytes. */
export type Samples = Map<string, Map<number, Sample[]>>;

export function remember(all: Samples, name: string, samples: readonly Sample[]): void {
  const bySize = all.get(name) ?? new Map<number, Sample[]>();
  for (const sample of samples) {
    bySize.set(sample.bytes, [...(bySize.get(sample.bytes) ?? []), sample]);
  }
  all.set(name, bySize);
}

/** The results for one size. */
export interface Row {
  readonly bytes: number;
  /** Median over the runs of each contender's time for a call, in microseconds. */
  readonly us: Readonly<Record<string, number>>;
  /** The fastest peer's time over ours; above 1, ours is faster. */
  readonly speedup: Readonly<Record<string, number>>;
  readonly bestPeer: string | null;
  /** The limit's time over ours: the share that we reach of what the machine allows. */
  readonly ofLimit: Readonly<Record<string, number>>;
  readonly wrong: number;
  /** Least and greatest cost of a hop before the runs. */
  readonly hopNs: readonly [number, number] | null;
}

export function rowsOf(all: Samples, contenders: readonly Contender[]): Row[] {
  const sizes = new Set([...all.values()].flatMap((bySize) => [...bySize.keys()]));
  return [...sizes].sort((a, b) => a - b).map((bytes) => rowOf(all, contenders, bytes));
}

/** The limit with which each contender of ours is compared. That of the `tcp` backend is the `host` backend. */
const limitOf: Readonly<Record<string, string>> = {
  c: 'limit-staged',
  'c-alloc': 'limit-shared',
  'js-tcp': 'js-async',
};

function rowOf(all: Samples, contenders: readonly Contender[], bytes: number): Row {
  const us: Record<string, number> = {};
  const samples: Sample[] = [];
  for (const { name } of contenders) {
    const own = all.get(name)?.get(bytes);
    if (own === undefined) continue;
    us[name] = median(own.map((sample) => sample.us));
    samples.push(...own);
  }
  const named = (kind: Contender['kind']) =>
    contenders.filter((c) => c.kind === kind && us[c.name] !== undefined).map(({ name }) => name);
  const bestPeer = named('peer').sort((a, b) => us[a]! - us[b]!)[0] ?? null;
  const ratio = (of: (name: string) => string | null | undefined) =>
    Object.fromEntries(
      named('ours').flatMap((name) => {
        const other = of(name);
        return other && us[other] !== undefined ? [[name, us[other] / us[name]!]] : [];
      }),
    );
  const hops = samples.flatMap(({ hopNs }) => (hopNs === null ? [] : [hopNs]));
  return {
    bytes,
    us,
    speedup: ratio(() => bestPeer),
    bestPeer,
    ofLimit: ratio((name) => limitOf[name]),
    wrong: samples.reduce((sum, { wrong }) => sum + wrong, 0),
    hopNs: hops.length ? [Math.min(...hops), Math.max(...hops)] : null,
  };
}

/** Returns a Markdown table of times in µs; our times are followed by "× best peer" and "% of the limit". */
export function tableOf(rows: readonly Row[], contenders: readonly Contender[]): string {
  const names = contenders.map(({ name }) => name).filter((name) => rows.some((row) => row.us[name]));
  const cells = rows.map((row) => [
    sizeName(row.bytes),
    ...names.map((name) => cellOf(row, name)),
    row.hopNs ? row.hopNs.map((ns) => ns.toFixed(0)).join('–') : '',
    ...(row.wrong ? [`${row.wrong} WRONG`] : ['']),
  ]);
  const head = ['size', ...names, 'hop ns', ''];
  const widths = head.map((title, i) => Math.max(title.length, 3, ...cells.map((row) => row[i]!.length)));
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, i) => cell.padStart(widths[i]!)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => `${'-'.repeat(width - 1)}:`)), ...cells.map(line)].join(
    '\n',
  );
}

function cellOf(row: Row, name: string): string {
  const us = row.us[name];
  if (us === undefined) return '';
  const notes = [
    ...(row.speedup[name] !== undefined ? [`${significant(row.speedup[name])}×`] : []),
    ...(row.ofLimit[name] !== undefined ? [`${Math.round(row.ofLimit[name] * 100)} %`] : []),
  ];
  return `${significant(us)}${row.bestPeer === name ? '*' : ''}${notes.length ? ` (${notes.join(', ')})` : ''}`;
}

function significant(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(value < 0.1 ? 2 : 3);
}

function sizeName(bytes: number): string {
  const power = bytes < 1024 ? 0 : bytes < 1024 ** 2 ? 1 : bytes < 1024 ** 3 ? 2 : 3;
  return `${Number((bytes / 1024 ** power).toFixed(1))} ${['B', 'KiB', 'MiB', 'GiB'][power]}`;
}
