// Draws the estimates as SVG: the step over the size of buckets for each algorithm, and the best step over time.
import { library, type Plan, type PlanRow } from './estimate.ts';
import type { PlanOptions } from './options.ts';
import { shownBytes, shownMs } from './units.ts';

const width = 720;
const left = 70;
const right = 20;
const inner = width - left - right;
const chart = { top: 74, bottom: 330 };
const legend = { top: 36, columns: 4, lineHeight: 15 };
const line = { top: 400, height: 26 };
const height = 500;
const colors = ['#000000', '#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#888888'];

/** Steps that are longer than this many times the best are cut off at the upper edge of the chart. */
const highest = 3;

const text = (x: number, y: number, anchor: 'start' | 'middle' | 'end', words: string, more = ''): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}"${more}>${words}</text>`;

/** Returns the drawing. */
export function drawPlan(options: PlanOptions, plan: Plan): string {
  const { ranks, perHost, between } = options;
  const title = `A training step among ${ranks} ranks on ${ranks / perHost} hosts, ${between.gbit} Gbit/s`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
      'font-family="sans-serif" font-size="11">',
    `<title>${title}</title>`,
    '<rect width="100%" height="100%" fill="#fff"/>',
    text(width / 2, 24, 'middle', title, ' font-size="15" font-weight="bold"'),
    ...curves(options, plan),
    ...timeline(options, plan.best),
    '</svg>',
    '',
  ].join('\n');
}

function curves({ buckets, stepMs }: PlanOptions, { rows, best }: Plan): string[] {
  const top = Math.min(Math.max(...rows.map((row) => row.stepMs)), highest * best.stepMs) * 1.05;
  const y = (ms: number) => chart.bottom - (Math.min(ms, top) / top) * (chart.bottom - chart.top);
  const x = (bucketBytes: number) => left + ((buckets.indexOf(bucketBytes) + 0.5) / buckets.length) * inner;
  const parts = [
    ...buckets.map((bytes) => text(x(bytes), chart.bottom + 16, 'middle', shownBytes(bytes))),
    text(left + inner / 2, chart.bottom + 34, 'middle', 'size of buckets'),
    `<line x1="${left}" y1="${y(stepMs)}" x2="${width - right}" y2="${y(stepMs)}" stroke="#999" stroke-dasharray="5 4"/>`,
    text(left - 6, y(stepMs) + 4, 'end', shownMs(stepMs)),
    text(width - right, y(stepMs) + 14, 'end', 'without communication'),
    text(left - 6, y(best.stepMs) - (y(stepMs) - y(best.stepMs) < 12 ? 8 : -4), 'end', shownMs(best.stepMs)),
  ];
  const names = [...new Set(rows.map(({ algorithm }) => algorithm))];
  for (const [i, name] of names.entries()) {
    const own = rows.filter(({ algorithm }) => algorithm === name);
    const color = colors[i % colors.length];
    const points = own.map((row) => `${x(row.bucketBytes).toFixed(1)},${y(row.stepMs).toFixed(1)}`);
    const dash = name === library ? ' stroke-width="2.5"' : '';
    parts.push(`<polyline points="${points.join(' ')}" fill="none" stroke="${color}"${dash}/>`);
    const x0 = left + (i % legend.columns) * (inner / legend.columns);
    const y0 = legend.top + Math.floor(i / legend.columns) * legend.lineHeight;
    parts.push(`<rect x="${x0.toFixed(1)}" y="${y0}" width="8" height="8" fill="${color}"/>`);
    parts.push(text(x0 + 12, y0 + 8, 'start', name));
  }
  return parts;
}

function timeline({ stepMs, backwardShare }: PlanOptions, best: PlanRow): string[] {
  const x = (ms: number) => left + (ms / best.stepMs) * inner;
  const bar = (from: number, to: number, row: number, color: string) =>
    `<rect x="${x(from).toFixed(2)}" y="${line.top + row * line.height}" width="${(x(to) - x(from)).toFixed(2)}" ` +
    `height="${line.height - 4}" fill="${color}" stroke="#fff" stroke-width="0.5"/>`;
  const backwardFrom = stepMs * (1 - backwardShare);
  const below = line.top + 2 * line.height + 12;
  return [
    text(
      left,
      line.top - 8,
      'start',
      `the best step: buckets of ${shownBytes(best.bucketBytes)}, ${best.runs.join(', ')}`,
    ),
    text(left - 6, line.top + 15, 'end', 'compute'),
    bar(0, backwardFrom, 0, '#bbbbbb'),
    bar(backwardFrom, stepMs, 0, '#56b4e9'),
    text(left - 6, line.top + line.height + 15, 'end', 'all-reduce'),
    ...best.buckets.map(({ startMs, endMs }) =>
      bar(startMs, endMs, 1, endMs > stepMs ? '#d55e00' : '#009e73'),
    ),
    text(left, below, 'start', '0 ms'),
    text(width - right, below, 'end', shownMs(best.stepMs)),
    text(
      left,
      below + 18,
      'start',
      'grey: forward and optimiser; blue: backward; green: hidden; red: waited for',
    ),
  ];
}
