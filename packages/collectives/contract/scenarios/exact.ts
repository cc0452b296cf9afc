// Scenarios with known answers: every collective with data, dtype and op, and many counts, on memory that
// begins three elements into a larger buffer, whose other elements must not change.

import { type DType, dtypes } from '../../src/dtype.ts';
import type { Group } from '../../src/group/group.ts';
import type { ReduceOptions } from '../../src/options/options.ts';
import type { ReduceOp } from '../../src/reduce-ops.ts';
import { reduceOps } from '../../src/reduce-ops.ts';
import { factorOf, guarded, inputPattern, reducedPattern } from '../inputs.ts';
import { invoke, type Mode } from '../invoke.ts';
import { expectParts, expectPattern, newReport, type Report } from '../report.ts';

export const counts = [0, 1, 2, 3, 7, 64, 1000];
const largeCount = 100_003;
const partCount = 25_001;

/** Tests allReduce, reduce and reduceScatter with every op on every dtype that the backend supports. */
export async function exactReductions(group: Group, mode: Mode): Promise<Report> {
  const report = newReport();
  for (const dtype of dtypes) {
    for (const op of reduceOps) {
      if (!group.supports.reduces(op, dtype)) continue;
      for (const count of counts) await checkReductions(group, mode, dtype, op, count, count, report);
      if (dtype !== 'float32' && op !== 'sum') continue;
      await checkReductions(group, mode, dtype, op, largeCount, partCount, report);
    }
  }
  return report;
}

/** Tests broadcast, gather and scatter with every root, and allGather and allToAll, for every dtype. */
export async function exactMoves(group: Group, mode: Mode): Promise<Report> {
  const report = newReport();
  for (const dtype of dtypes) {
    const isLarge = dtype === 'float32' || dtype === 'int8';
    for (const count of isLarge ? [...counts, largeCount] : counts) {
      for (let root = 0; root < group.size; root++)
        await checkRooted(group, mode, dtype, root, count, report);
      await checkAllGather(group, mode, dtype, count, report);
      await checkAllToAll(group, mode, dtype, count, report);
    }
  }
  return report;
}

async function checkReductions(
  group: Group,
  mode: Mode,
  dtype: DType,
  op: ReduceOp,
  count: number,
  part: number,
  report: Report,
) {
  const { rank, size } = group;
  const pattern = inputPattern(op, dtype, rank, size);
  const reduced = reducedPattern(op, dtype, size);
  const options: ReduceOptions = op === 'premulSum' ? { op, factor: factorOf(rank) } : { op };
  const what = `${op} ${count} × ${dtype}`;

  const all = guarded(dtype, count, pattern);
  await invoke(group, mode, 'allReduce', all.like, options);
  expectPattern(report, `allReduce ${what}`, all, reduced);

  const root = count % size;
  const one = guarded(dtype, count, pattern);
  await invoke(group, mode, 'reduce', one.like, { ...options, root });
  expectPattern(report, `reduce ${what} to rank ${root}`, one, rank === root ? reduced : pattern);

  const input = guarded(dtype, part * size, pattern);
  const output = guarded(dtype, part);
  await invoke(group, mode, 'reduceScatter', input.like, output.like, options);
  expectPattern(report, `reduceScatter ${op} ${part} × ${dtype}`, output, reduced, rank * part);
  expectPattern(report, `input of reduceScatter ${op} ${part} × ${dtype}`, input, pattern);
}

async function checkRooted(
  group: Group,
  mode: Mode,
  dtype: DType,
  root: number,
  count: number,
  report: Report,
) {
  const { rank, size } = group;
  const what = `${count} × ${dtype} with root ${root}`;
  const patternOf = (from: number) => inputPattern('move', dtype, from, size);
  const isRoot = rank === root;

  const buffer = guarded(dtype, count, patternOf(rank));
  await invoke(group, mode, 'broadcast', buffer.like, { root });
  expectPattern(report, `broadcast ${what}`, buffer, patternOf(root));

  const input = guarded(dtype, count, patternOf(rank));
  const output = isRoot ? guarded(dtype, count * size) : null;
  await invoke(group, mode, 'gather', input.like, output?.like ?? null, { root });
  expectPattern(report, `input of gather ${what}`, input, patternOf(rank));
  const evenly = new Array<number>(size).fill(count);
  if (output !== null) expectParts(report, `gather ${what}`, output, evenly, patternOf);

  const whole = isRoot ? guarded(dtype, count * size, patternOf(root)) : null;
  const part = guarded(dtype, count);
  await invoke(group, mode, 'scatter', whole?.like ?? null, part.like, { root });
  expectPattern(report, `scatter ${what}`, part, patternOf(root), rank * count);
  if (whole !== null) expectPattern(report, `input of scatter ${what}`, whole, patternOf(root));
}

async function checkAllGather(group: Group, mode: Mode, dtype: DType, count: number, report: Report) {
  const { rank, size } = group;
  const patternOf = (from: number) => inputPattern('move', dtype, from, size);
  const input = guarded(dtype, count, patternOf(rank));
  const output = guarded(dtype, count * size);
  await invoke(group, mode, 'allGather', input.like, output.like);
  const evenly = new Array<number>(size).fill(count);
  expectParts(report, `allGather ${count} × ${dtype}`, output, evenly, patternOf);
  expectPattern(report, `input of allGather ${count} × ${dtype}`, input, patternOf(rank));
}

async function checkAllToAll(group: Group, mode: Mode, dtype: DType, count: number, report: Report) {
  const { rank, size } = group;
  const patternOf = (from: number) => inputPattern('move', dtype, from, size);
  const input = guarded(dtype, count * size, patternOf(rank));
  const output = guarded(dtype, count * size);
  await invoke(group, mode, 'allToAll', input.like, output.like);
  const evenly = new Array<number>(size).fill(count);
  expectParts(report, `allToAll ${count} × ${dtype}`, output, evenly, patternOf, rank * count);
  expectPattern(report, `input of allToAll ${count} × ${dtype}`, input, patternOf(rank));
}
