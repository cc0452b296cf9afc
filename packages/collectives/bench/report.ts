// Formats the results: as a table with nccl-tests' columns, or as JSON.
import type { Group } from '../src/group/group.ts';
import type { BenchOptions } from './options.ts';
import { isSync, type Row } from './run.ts';
import { partsOf } from './verbs.ts';

export interface Reporter {
  /** Text before the rows. */
  readonly head: string;
  readonly row: (row: Row) => string;
  /** Text after the rows. */
  readonly foot: (rows: readonly Row[]) => string;
}

/** Returns the reporter for these options. Every text is empty or ends with a line break. */
export function reporter(options: BenchOptions, group: Group): Reporter {
  return options.json ? jsonReporter(options, group) : tableReporter(options, group);
}

function jsonReporter(options: BenchOptions, group: Group): Reporter {
  const { verb, dtype, op, alloc } = options;
  const row = (row: Row) => {
    const line = {
      op: verb.name,
      backend: group.backend,
      world: group.size,
      dtype,
      bytes: row.bytes,
      iters: row.iters,
      p50Us: row.p50Us,
      algbwGBs: algbw(row),
      busbwGBs: algbw(row) * verb.busFactor(group.size),
      wrong: row.wrong,
      count: row.count,
      redop: verb.reduces ? op : null,
      form: formOf(options, group),
      inPlace: verb.inPlace,
      alloc,
      meanUs: row.meanUs,
      algorithm: row.algorithm,
      ...('limitUs' in row && 'ratio' in row && { limitUs: row.limitUs, ratio: row.ratio }),
    };
    return `${JSON.stringify(line, (_, value) => (Number.isInteger(value) ? value : rounded(value)))}\n`;
  };
  return { head: '', row, foot: () => '' };
}

function tableReporter(options: BenchOptions, group: Group): Reporter {
  const { verb, dtype, op, alloc } = options;
  const hasData = partsOf(verb, group.size) > 0;
  const setting = [
    `${group.size} rank${group.size > 1 ? 's' : ''}`,
    `backend ${group.backend}`,
    `${formOf(options, group)} form`,
    ...(hasData ? [verb.inPlace ? 'in place' : 'out of place'] : []),
    ...(alloc ? ['buffers from group.alloc()'] : []),
  ].join(', ');
  const columns = (cells: readonly string[]) =>
    `${cells
      .map((cell, i) => cell.padStart(widths[i] ?? 0))
      .join('')
      .trimEnd()}\n`;
  return {
    head:
      `# ringwise bench ${verb.name}: ${setting}\n` +
      columns(['size', 'count', 'type', 'redop', 'time', 'algbw', 'busbw', 'wrong', 'iters']) +
      columns(['(B)', '(elements)', '', '', '(us)', '(GB/s)', '(GB/s)']),
    row: (row) =>
      columns([
        `${row.bytes}`,
        `${row.count}`,
        dtype,
        verb.reduces ? op : 'none',
        shown(row.p50Us),
        algbw(row).toFixed(2),
        (algbw(row) * verb.busFactor(group.size)).toFixed(2),
        `${row.wrong}`,
        `${row.iters}`,
        row.algorithm === null ? '' : `  ${row.algorithm}`,
      ]),
    foot: (rows) => {
      if (!hasData) return '';
      const mean = rows.reduce((sum, row) => sum + algbw(row), 0) / Math.max(rows.length, 1);
      return `# mean busbw ${(mean * verb.busFactor(group.size)).toFixed(2)} GB/s\n`;
    },
  };
}

const widths = [12, 12, 10, 11, 11, 10, 10, 7, 9];

function formOf(options: BenchOptions, group: Group): 'sync' | 'async' {
  return isSync(options, group) ? 'sync' : 'async';
}

/** Returns the algorithm bandwidth in 10^9 bytes per second. */
function algbw({ bytes, p50Us }: Row): number {
  return bytes / p50Us / 1000;
}

const rounded = (value: unknown) => (typeof value === 'number' ? Number(value.toPrecision(5)) : value);

function shown(us: number): string {
  return us.toFixed(us < 100 ? 2 : us < 1000 ? 1 : 0);
}
