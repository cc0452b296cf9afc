// Scenario: allReduce with every wire. The expectations hold for backends that round and for backends that
// ignore the wire: numbers that a wire can represent arrive exactly, and with error feedback nothing is lost
// over time.
import type { Group } from '../../src/group/group.ts';
import { type Guarded, guarded, randomFloats } from '../inputs.ts';
import { invoke, type Mode } from '../invoke.ts';
import { expect, expectPattern, newReport, type Report } from '../report.ts';

const counts = [0, 1, 33, 1000, 70_001];

export async function sumsByWire(group: Group, mode: Mode): Promise<Report> {
  const report = newReport();
  for (const count of counts) {
    for (const op of ['sum', 'avg'] as const) {
      for (const wire of ['full', 'bfloat16', 'int8'] as const) {
        await checkExact(group, mode, count, { op, wire }, null, report);
      }
      await checkExact(group, mode, count, { op, wire: 'int8' }, guarded('float32', count), report);
    }
    await checkFeedback(group, mode, count, report);
  }
  return report;
}

/** Checks integers whose sums have 7 bits. They are not rounded, so the residual stays zero. */
async function checkExact(
  group: Group,
  mode: Mode,
  count: number,
  options: { readonly op: 'sum' | 'avg'; readonly wire: 'full' | 'bfloat16' | 'int8' },
  residual: Guarded | null,
  report: Report,
) {
  const { rank, size } = group;
  const range = Math.floor(127 / size) + 1;
  const patternOf = (from: number) => Array.from({ length: range }, (_, i) => (i * 7 + from * 3) % range);
  const patterns = Array.from({ length: size }, (_, from) => patternOf(from));
  const divisor = options.op === 'avg' ? size : 1;
  const sums = patternOf(0).map((_, i) => {
    return Math.fround(patterns.reduce((total, pattern) => total + pattern[i]!, 0) / divisor);
  });
  const buffer = guarded('float32', count, patternOf(rank));
  const what = `${options.op} of ${count} × float32 by ${options.wire}`;
  if (residual === null) await invoke(group, mode, 'allReduce', buffer.like, options);
  else await invoke(group, mode, 'allReduce', buffer.like, { ...options, residual: residual.like });
  expectPattern(report, what, buffer, sums);
  if (residual !== null) expectPattern(report, `residual of ${what}`, residual, [0]);
}

/** Checks that the sum of all steps' results plus the residuals equals the sum of the inputs. */
async function checkFeedback(group: Group, mode: Mode, count: number, report: Report) {
  const { rank, size } = group;
  const residual = new Float32Array(count);
  const [rest, given] = [new Float64Array(count), new Float64Array(count)];
  for (let step = 0; step < 5; step++) {
    const random = randomFloats(rank + 17 * step + 1);
    const values = Float32Array.from({ length: count }, () => random() ** 3);
    for (let i = 0; i < count; i++) given[i]! += values[i]!;
    await invoke(group, mode, 'allReduce', values, { op: 'avg', wire: 'int8', residual });
    for (let i = 0; i < count; i++) rest[i]! -= values[i]!; // over all ranks: `size` averages, the sum
  }
  for (let i = 0; i < count; i++) rest[i]! += given[i]! - residual[i]!;
  await invoke(group, mode, 'allReduce', rest);
  const farthest = rest.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  expect(report, farthest < 1e-5 * size, `${count} × float32 by int8: ${farthest} got lost in five steps`);
}
