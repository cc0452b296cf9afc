// Scenarios with many buffers in one call: small, large and empty ones, of several dtypes.
import { byteSize, type DType } from '../../src/dtype.ts';
import type { Group } from '../../src/group/group.ts';
import { type Guarded, guarded, inputPattern, reducedPattern } from '../inputs.ts';
import { invoke, type Mode } from '../invoke.ts';
import { expect, expectParts, expectPattern, newReport, type Report } from '../report.ts';
import { likes } from './parts.ts';

const kinds: readonly (readonly [DType, number])[] = [
  ['float32', 5],
  ['int32', 3],
  ['float32', 0],
  ['float32', 70_000],
  ['bfloat16', 9],
  ['float32', 1],
  ['int32', 1000],
  ['bfloat16', 40_000],
  ['float64', 2],
];

/** Tests allReduce, reduce, broadcast, allGather, gather, scatter and reduceScatter of lists. */
export async function manyBuffers(group: Group, mode: Mode): Promise<Report> {
  const report = newReport();
  for (const list of [kinds, kinds.slice(0, 2), kinds.slice(3, 4), []]) {
    for (const root of new Set([0, group.size - 1])) {
      await checkInPlace(group, mode, list, root, report);
      await checkParts(group, mode, list, root, report);
    }
  }
  expect(report, group.failure === null, 'the group failed');
  return report;
}

type List = readonly (readonly [DType, number])[];

async function checkInPlace(group: Group, mode: Mode, list: List, root: number, report: Report) {
  const { rank, size } = group;
  const inputOf = (dtype: DType, from = rank) => inputPattern('sum', dtype, from, size);
  const make = () => list.map(([dtype, count]) => guarded(dtype, count, inputOf(dtype)));
  const check = (
    what: string,
    buffers: readonly Guarded[],
    patternOf: (dtype: DType) => ReturnType<typeof inputOf>,
  ) => {
    for (const [index, buffer] of buffers.entries()) {
      const [dtype, count] = list[index] as (typeof list)[number];
      expectPattern(report, `${what} of a list, ${count} × ${dtype} at ${index}`, buffer, patternOf(dtype));
    }
  };
  const sumOf = (dtype: DType) => reducedPattern('sum', dtype, size);

  const all = make();
  await invoke(group, mode, 'allReduce', likes(all));
  check('allReduce', all, sumOf);
  const one = make();
  await invoke(group, mode, 'reduce', likes(one), { root });
  check('reduce', one, rank === root ? sumOf : inputOf);
  const copies = make();
  await invoke(group, mode, 'broadcast', likes(copies), { root });
  check('broadcast', copies, (dtype) => inputOf(dtype, root));
}

async function checkParts(group: Group, mode: Mode, list: List, root: number, report: Report) {
  const { rank, size } = group;
  const patternOf = (dtype: DType, from: number) => inputPattern('sum', dtype, from, size);
  const parts = () => list.map(([dtype, count]) => guarded(dtype, count, patternOf(dtype, rank)));
  const wholes = () => list.map(([dtype, count]) => guarded(dtype, count * size, patternOf(dtype, rank)));
  const each = (
    what: string,
    buffers: readonly Guarded[],
    check: (dtype: DType, buffer: Guarded, text: string) => void,
  ) => {
    for (const [index, buffer] of buffers.entries()) {
      const [dtype, count] = list[index] as (typeof list)[number];
      check(dtype, buffer, `${what} of a list, ${count} × ${dtype} at ${index}`);
    }
  };
  const joined = (dtype: DType, buffer: Guarded, text: string) => {
    const evenly = new Array<number>(size).fill(buffer.elements.length / size);
    expectParts(report, text, buffer, evenly, (from) => patternOf(dtype, from));
  };

  const all = wholes();
  await invoke(group, mode, 'allGather', likes(parts()), likes(all));
  each('allGather', all, joined);
  const atRoot = rank === root ? wholes() : null;
  await invoke(group, mode, 'gather', likes(parts()), atRoot && likes(atRoot), { root });
  each('gather', atRoot ?? [], joined);
  const scattered = parts();
  await invoke(group, mode, 'scatter', rank === root ? likes(wholes()) : null, likes(scattered), { root });
  each('scatter', scattered, (dtype, buffer, text) =>
    expectPattern(report, text, buffer, patternOf(dtype, root), rank * buffer.elements.length),
  );
  const reduced = parts();
  await invoke(group, mode, 'reduceScatter', likes(wholes()), likes(reduced));
  each('reduceScatter', reduced, (dtype, buffer, text) =>
    expectPattern(report, text, buffer, reducedPattern('sum', dtype, size), rank * buffer.elements.length),
  );
}

/**
 * Checks the number of operations for a list of buffers: one for each large buffer, and one for each dtype of
 * small buffers.
 */
export async function manyIsFew(group: Group): Promise<Report> {
  const report = newReport();
  const before = await seqOf(group);
  await group.allReduce(kinds.map(([dtype, count]) => guarded(dtype, count).like));
  const large = kinds.filter(([dtype, count]) => count * byteSize(dtype) >= 65_536);
  const small = new Set(kinds.filter((kind) => !large.includes(kind)).map(([dtype]) => dtype));
  const operations = (await seqOf(group)) - before - 1;
  expect(report, operations === large.length + small.size, `a list took ${operations} operations`);
  return report;
}

async function seqOf(group: Group): Promise<number> {
  const work = group.barrier();
  await work;
  return work.seq;
}
