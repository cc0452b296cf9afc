// Formats the estimates as a table with what follows from it, or as JSON.
import { byteSize } from '../src/dtype.ts';
import { library, type Plan, type PlanRow } from './estimate.ts';
import type { PlanOptions } from './options.ts';
import { shownBytes, shownMs } from './units.ts';

/** Limit of buckets of `ddp()` without options. */
const defaultBucketBytes = 25 * 2 ** 20;

/** Returns the estimates as one line of JSON. Times are in milliseconds. */
export function planJson(options: PlanOptions, plan: Plan): string {
  const { json: _json, svg: _svg, ...settings } = options;
  const without = ({ buckets, ...row }: PlanRow) => ({ ...row, operations: buckets.length });
  const line = {
    ...settings,
    gradientBytes: options.params * byteSize(options.dtype),
    best: without(plan.best),
    rows: plan.rows.map(without),
    leftOut: plan.leftOut,
  };
  const rounded = (_: string, value: unknown) =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
  return `${JSON.stringify(line, rounded)}\n`;
}

/** Returns the estimates as text. */
export function planText(options: PlanOptions, plan: Plan): string {
  return `${[...head(options), '', ...table(plan), '', ...conclusion(options, plan)].join('\n')}\n`;
}

function head({
  ranks,
  perHost,
  between,
  params,
  dtype,
  wire,
  stepMs,
  backwardShare,
}: PlanOptions): string[] {
  const hosts = ranks / perHost;
  const each = perHost === 1 ? 'one' : `${perHost}`;
  const bytes = (params * byteSize(dtype)) / 1e6;
  const { gbit, latencyUs, overheadUs } = between;
  return [
    `${ranks} ranks, ${each} on each of ${hosts} hosts; ${gbit} Gbit/s, ${latencyUs} us, ${overheadUs} us per message`,
    `${bytes.toPrecision(4)} MB of gradients in each step (${dtype})${wire === 'full' ? '' : `, sent as ${wire}`}`,
    `a step without communication takes ${shownMs(stepMs)}, of which backward takes ${shownMs(stepMs * backwardShare)}`,
  ];
}

const nameWidth = 52;

/** Lists, for each size of buckets, the library's choice, and the fastest algorithm if it is faster. */
function table({ rows, leftOut, best }: Plan): string[] {
  const lines = [`buckets   ${'algorithm'.padEnd(nameWidth)} all-reduces        step     exposed`];
  for (const bucketBytes of new Set(rows.map((row) => row.bucketBytes))) {
    const here = rows.filter((row) => row.bucketBytes === bucketBytes);
    const own = here.find(({ algorithm }) => algorithm === library);
    const fastest = here.reduce((a, b) => (b.stepMs < a.stepMs ? b : a), own ?? here[0]!);
    for (const row of new Set([own ?? fastest, fastest])) {
      const name = row === own ? `${library}: ${row.runs.join(' and ')}` : row.algorithm;
      const mark = row === best ? ' *' : '';
      const times = [row.communicationMs, row.stepMs, row.exposedMs].map((ms) => shownMs(ms).padStart(12));
      lines.push(
        `${shownBytes(bucketBytes).padEnd(10)}${`${name}${mark}`.padEnd(nameWidth)}${times.join('')}`,
      );
    }
  }
  for (const name of new Set(leftOut.map(({ algorithm }) => algorithm))) {
    const sizes = leftOut
      .filter(({ algorithm }) => algorithm === name)
      .map((row) => shownBytes(row.bucketBytes));
    lines.push(`left out, for the number of its messages: ${name} at ${sizes.join(', ')}`);
  }
  return lines;
}

function conclusion({ stepMs }: PlanOptions, { rows, best }: Plan): string[] {
  const efficiency = ((100 * stepMs) / best.stepMs).toFixed(0);
  const waiting = `${shownMs(best.exposedMs)} of it waiting for communication`;
  const chosen = best.algorithm === library ? '' : ` and RINGWISE_ALGO_ALLREDUCE=${best.algorithm}`;
  const lines = [
    `best: ddp(model, { group, bucketBytes: ${best.bucketBytes} })${chosen}`,
    `      ${shownMs(best.stepMs)} per step, ${waiting}; ${efficiency} % of the ranks' time trains`,
  ];
  const own = rows.find((row) => row.algorithm === library && row.bucketBytes === defaultBucketBytes);
  if (own && own !== best)
    lines.push(`defaults: ${shownMs(own.stepMs)} per step, ${shownMs(own.exposedMs)} of it waiting`);
  return lines;
}
