// Formats the table lines and draws the plot of bench/simulate.ts.
import { drawLogPlot, type Panel } from '../plot/log-plot.ts';
import type { Row, Skipped } from './program.ts';

/** Formats `value` in the largest unit that is not above it. `units` are in ascending order, with their sizes. */
function inUnits(value: number, units: readonly (readonly [number, string])[]): string {
  const [unit, name] = units.findLast(([least]) => value >= least) ?? units[0]!;
  return `${Number((value / unit).toPrecision(3))}${name}`;
}
const bytesUnits = [
  [1, ''],
  [2 ** 10, 'K'],
  [2 ** 20, 'M'],
  [2 ** 30, 'G'],
  [2 ** 40, 'T'],
] as const;
const timeUnits = [
  [1, ' µs'],
  [1e3, ' ms'],
  [1e6, ' s'],
] as const;
export const size = (bytes: number): string => inUnits(bytes, bytesUnits);
const duration = (us: number): string => inUnits(us, timeUnits);

export const header =
  ' ranks   bytes  algorithm                 time    formula    messages  link max link total    inside  checked';

const caseOf = ({ ranks, bytes }: { ranks: number; bytes: number }): string =>
  `${String(ranks).padStart(6)} ${size(bytes).padStart(7)}`;

/** Formats the formula's time. Adds how far the simulation is from it, if they differ by more than 1e-7 of the time. */
function formulaOf({ timeUs, formulaUs }: Row): string {
  if (formulaUs === undefined) return '';
  const off = timeUs / formulaUs - 1;
  return Math.abs(off) < 1e-7
    ? duration(formulaUs)
    : `${duration(formulaUs)} (off by ${(100 * off).toPrecision(2)} %)`;
}

/** Formats a row of the table; `*` marks the algorithm that the library would choose. */
export function tableLine(row: Row | Skipped): string {
  const isChosen = 'isChosen' in row && row.isChosen;
  const name = `${caseOf(row)}  ${`${row.algorithm}${isChosen ? ' *' : ''}`.padEnd(20)}`;
  if ('skipped' in row) return `${name}left out: ${row.skipped}`;
  return (
    `${name}${duration(row.timeUs).padStart(10)} ${formulaOf(row).padStart(10)} ${String(row.messages).padStart(11)} ` +
    `${size(row.linkBytesMax).padStart(9)} ${size(row.linkBytesTotal).padStart(10)} ` +
    `${size(row.insideBytesTotal).padStart(9)}  ${row.checked}`
  );
}

/** The algorithm that the library would choose and the fastest one, for one number of ranks and bytes. */
export interface Choice {
  readonly verb: string;
  readonly ranks: number;
  readonly hosts: number;
  readonly bytes: number;
  readonly chosen: string;
  readonly chosenUs: number;
  readonly best: string;
  readonly bestUs: number;
}

/** Returns the choices for all ranks and bytes in `rows`, except those where the chosen algorithm was left out. */
export function choicesAmong(rows: readonly Row[]): Choice[] {
  return rows
    .filter((row) => row.isChosen)
    .map(({ verb, ranks, hosts, bytes, algorithm, timeUs }) => {
      const rivals = rows.filter((row) => row.ranks === ranks && row.bytes === bytes);
      const best = rivals.reduce((a, b) => (b.timeUs < a.timeUs ? b : a));
      const found = { chosen: algorithm, chosenUs: timeUs, best: best.algorithm, bestUs: best.timeUs };
      return { verb, ranks, hosts, bytes, ...found };
    });
}

export const choiceHeader =
  ' ranks   bytes  chosen                    time  best                      time  slower';

export function choiceLine(choice: Choice): string {
  const { chosen, chosenUs, best, bestUs } = choice;
  const slower = chosenUs / bestUs - 1;
  return (
    `${caseOf(choice)}  ${chosen.padEnd(20)}${duration(chosenUs).padStart(10)}  ` +
    `${best.padEnd(20)}${duration(bestUs).padStart(10)} ${(slower < 0.005 ? '' : `${(100 * slower).toFixed(0)} %`).padStart(7)}`
  );
}

/** Draws time against ranks as SVG, with a panel per size and a colour per algorithm. */
export function drawRows(verb: string, rows: readonly Row[]): string {
  const panels = [...new Set(rows.map((row) => row.bytes))].map((bytes): Panel => {
    const ofSize = rows.filter((row) => row.bytes === bytes);
    const curves = [...new Set(ofSize.map((row) => row.algorithm))].map((name) => {
      const own = ofSize.filter((row) => row.algorithm === name);
      return {
        name,
        marks: own.map((row) => ({ x: row.ranks, y: row.timeUs })),
        line: own.flatMap((row) => (row.formulaUs === undefined ? [] : [{ x: row.ranks, y: row.formulaUs }])),
      };
    });
    return { title: `${size(bytes)} bytes`, curves };
  });
  return drawLogPlot({
    title: `${verb}: simulated (marks) and by formula (lines)`,
    xLabel: 'ranks',
    yLabel: 'time',
    xTick: String,
    yTick: duration,
    panels,
  });
}
