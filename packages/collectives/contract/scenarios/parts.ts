// Scenarios in which the ranks' parts differ in length, are lists, or both.
import type { DType } from '../../src/dtype.ts';
import type { Group } from '../../src/group/group.ts';
import { type Guarded, guarded, inputPattern, reducedPattern } from '../inputs.ts';
import { invoke, type Mode } from '../invoke.ts';
import { expectParts, expectPattern, newReport, type Report } from '../report.ts';

const dtypes = ['float32', 'bfloat16', 'int64', 'bool'] as const;

/** Returns tables of lengths by rank: some lengths are 0, some large, and in one table all are equal. */
function countsFor(size: number): number[][] {
  const tables = [
    [3, 0, 1, 5],
    [0, 4, 2, 0],
    [1000, 1, 33_001, 7],
    [6, 6, 6, 6],
    [0, 0, 0, 9],
  ];
  return tables.map((table) =>
    Array.from({ length: size }, (_, rank) => table[rank % table.length] as number),
  );
}

/** Returns counts as a program in JavaScript may pass them: for one dtype as a typed array. */
const given = (counts: readonly number[], dtype: DType): readonly number[] =>
  dtype === 'int64' ? (Int32Array.from(counts) as unknown as number[]) : counts;

/** Tests allGather, gather, scatter and reduceScatter with counts. */
export async function unevenParts(group: Group, mode: Mode): Promise<Report> {
  const report = newReport();
  for (const dtype of dtypes) {
    for (const [index, counts] of countsFor(group.size).entries()) {
      await checkGathering(group, mode, dtype, counts, index % group.size, report);
      await checkScattering(group, mode, dtype, counts, index % group.size, report);
      await checkAllToAll(group, mode, dtype, index, report);
      await checkOwnParts(group, mode, dtype, counts, index % group.size, report);
    }
  }
  return report;
}

async function checkGathering(
  group: Group,
  mode: Mode,
  dtype: DType,
  counts: readonly number[],
  root: number,
  report: Report,
) {
  const { rank, size } = group;
  const patternOf = (from: number) => inputPattern('move', dtype, from, size);
  const input = guarded(dtype, counts[rank] as number, patternOf(rank));
  const what = `[${counts}] × ${dtype}`;

  const all = guarded(dtype, sum(counts));
  await invoke(group, mode, 'allGather', input.like, all.like, { counts: given(counts, dtype) });
  expectParts(report, `allGather ${what}`, all, counts, patternOf);

  const list = counts.map((count) => guarded(dtype, count));
  await invoke(group, mode, 'allGather', input.like, likes(list));
  for (const [from, part] of list.entries())
    expectPattern(report, `allGather ${what} to list, rank ${from}`, part, patternOf(from));

  const one = rank === root ? guarded(dtype, sum(counts)) : null;
  await invoke(group, mode, 'gather', input.like, one?.like ?? null, { counts: given(counts, dtype), root });
  if (one !== null) expectParts(report, `gather ${what}`, one, counts, patternOf);

  const ones = rank === root ? counts.map((count) => guarded(dtype, count)) : null;
  await invoke(group, mode, 'gather', input.like, ones && likes(ones), {
    counts: given(counts, dtype),
    root,
  });
  for (const [from, part] of (ones ?? []).entries())
    expectPattern(report, `gather ${what} to list, rank ${from}`, part, patternOf(from));
  expectPattern(report, `input of gathering ${what}`, input, patternOf(rank));
}

async function checkScattering(
  group: Group,
  mode: Mode,
  dtype: DType,
  counts: readonly number[],
  root: number,
  report: Report,
) {
  const { rank, size } = group;
  const start = sum(counts.slice(0, rank));
  const count = counts[rank] as number;
  const what = `[${counts}] × ${dtype}`;
  const pattern = inputPattern('move', dtype, root, size);

  const part = guarded(dtype, count);
  const whole = rank === root ? guarded(dtype, sum(counts), pattern) : null;
  await invoke(group, mode, 'scatter', whole?.like ?? null, part.like, {
    counts: given(counts, dtype),
    root,
  });
  expectPattern(report, `scatter ${what}`, part, pattern, start);

  const fromList = guarded(dtype, count);
  const list = rank === root ? counts.map((length) => guarded(dtype, length, pattern)) : null;
  await invoke(group, mode, 'scatter', list && likes(list), fromList.like, {
    counts: given(counts, dtype),
    root,
  });
  expectPattern(report, `scatter ${what} from list`, fromList, pattern);

  const mine = inputPattern('max', dtype, rank, size);
  const input = guarded(dtype, sum(counts), mine);
  const reduced = guarded(dtype, count);
  await invoke(group, mode, 'reduceScatter', input.like, reduced.like, {
    counts: given(counts, dtype),
    op: 'max',
  });
  expectPattern(report, `reduceScatter ${what}`, reduced, reducedPattern('max', dtype, size), start);

  const inputs = counts.map((length) => guarded(dtype, length, mine));
  const output = guarded(dtype, count);
  await invoke(group, mode, 'reduceScatter', likes(inputs), output.like, { op: 'max' });
  expectPattern(report, `reduceScatter ${what} from list`, output, reducedPattern('max', dtype, size));
  expectPattern(report, `input of reduceScatter ${what}`, input, mine);
}

async function checkAllToAll(group: Group, mode: Mode, dtype: DType, seed: number, report: Report) {
  const { rank, size } = group;
  const countOf = (from: number, to: number) => ((from * 5 + to * 3 + seed) % 4) * (seed === 2 ? 9_000 : 1);
  const ranks = Array.from({ length: size }, (_, other) => other);
  const sendCounts = ranks.map((to) => countOf(rank, to));
  const recvCounts = ranks.map((from) => countOf(from, rank));
  const patternOf = (from: number) => inputPattern('move', dtype, from, size);
  const what = `allToAll [${sendCounts}] to [${recvCounts}] × ${dtype}`;

  const input = guarded(dtype, sum(sendCounts), patternOf(rank));
  const output = guarded(dtype, sum(recvCounts));
  await invoke(group, mode, 'allToAll', input.like, output.like, { sendCounts, recvCounts });
  const startOf = (from: number) => sum(ranks.slice(0, rank).map((to) => countOf(from, to)));
  expectParts(report, what, output, recvCounts, patternOf, startOf);

  const inputs = sendCounts.map((count) => guarded(dtype, count, patternOf(rank)));
  const outputs = recvCounts.map((count) => guarded(dtype, count));
  await invoke(group, mode, 'allToAll', likes(inputs), likes(outputs));
  for (const [from, part] of outputs.entries())
    expectPattern(report, `${what} as lists, from ${from}`, part, patternOf(from));
  expectPattern(report, `input of ${what}`, input, patternOf(rank));
}

/** Tests calls whose part is this rank's part of the whole itself. */
async function checkOwnParts(
  group: Group,
  mode: Mode,
  dtype: DType,
  lengths: readonly number[],
  root: number,
  report: Report,
) {
  const { rank, size } = group;
  const counts = given(lengths, dtype);
  const start = sum(lengths.slice(0, rank));
  const count = lengths[rank] as number;
  const ownOf = ({ like, elements }: Guarded) => {
    const own = elements.subarray(start, start + count);
    return ArrayBuffer.isView(like) ? own : { data: own, dtype };
  };
  const patternOf = (from: number) => inputPattern('move', dtype, from, size);
  const what = `[${lengths}] × ${dtype}, in place`;
  const filled = () => {
    const whole = guarded(dtype, sum(lengths));
    whole.elements.set(guarded(dtype, count, patternOf(rank)).elements as never, start);
    return whole;
  };

  const all = filled();
  await invoke(group, mode, 'allGather', ownOf(all) as never, all.like, { counts });
  expectParts(report, `allGather ${what}`, all, lengths, patternOf);

  const one = filled();
  const gathered = rank === root ? one.like : null;
  await invoke(group, mode, 'gather', ownOf(one) as never, gathered, { counts, root });
  if (rank === root) expectParts(report, `gather ${what}`, one, lengths, patternOf);

  const sent = guarded(dtype, sum(lengths), patternOf(root));
  const part = rank === root ? ownOf(sent) : guarded(dtype, count).like;
  await invoke(group, mode, 'scatter', rank === root ? sent.like : null, part as never, { counts, root });
  expectPattern(report, `scatter ${what}`, sent, patternOf(root));

  const mine = inputPattern('max', dtype, rank, size);
  const summed = guarded(dtype, sum(lengths), mine);
  await invoke(group, mode, 'reduceScatter', summed.like, ownOf(summed) as never, { counts, op: 'max' });
  const end = start + count;
  const { elements, isIntact } = summed;
  const of = (from: number, to?: number) => ({ elements: elements.subarray(from, to), isIntact });
  const maximum = reducedPattern('max', dtype, size);
  expectPattern(report, `reduceScatter ${what}`, of(start, end), maximum, start);
  expectPattern(report, `before the part of reduceScatter ${what}`, of(0, start), mine);
  expectPattern(report, `after the part of reduceScatter ${what}`, of(end), mine, end);
}

export function likes(list: readonly Guarded[]) {
  return list.map(({ like }) => like);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
