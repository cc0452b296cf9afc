// Scenarios about the order of operations, and about results that must not depend on rank, run or time.
import { createHash } from 'node:crypto';
import { isNarrowFloat, narrowFloats } from '../../src/backends/arithmetic/narrow-floats.ts';
import { dtypes } from '../../src/dtype.ts';
import { type ArrayOf, allocHost, elementsOf } from '../../src/group/buffer.ts';
import type { Allocated, Group } from '../../src/group/group.ts';
import type { Work } from '../../src/group/work.ts';
import { firstWrong, guarded, inputPattern, randomFloats, reducedPattern } from '../inputs.ts';
import type { Mode } from '../invoke.ts';
import type { Report } from '../report.ts';

/** Starts a hundred operations of mixed verbs and lengths without awaiting any. All must end in call order. */
export async function manyPending(group: Group): Promise<Report> {
  const report: Report = { checks: 0, faults: [] };
  const { rank, size } = group;
  const random = randomFloats(7); // the same on all ranks
  const ended: number[] = [];
  const works: Promise<void>[] = [];
  const checks: (() => void)[] = [];
  for (let i = 0; i < 100; i++) {
    const count = Math.floor((random() + 1) * 500);
    const [work, check] = startOne(group, i % 5, count);
    works.push(work.then(() => void ended.push(i)));
    checks.push(() => {
      report.checks++;
      const fault = check();
      if (fault !== null)
        report.faults.push(`operation ${i}, ${count} elements, rank ${rank} of ${size}: ${fault}`);
    });
  }
  await Promise.all(works);
  for (const check of checks) check();
  const wrong = ended.findIndex((operation, position) => operation !== position);
  if (wrong >= 0) report.faults.push(`operation ${ended[wrong]} ended before operation ${wrong}`);
  return report;
}

function startOne(group: Group, kind: number, count: number): [Work, () => string | null] {
  const { rank, size } = group;
  const pattern = inputPattern('sum', 'float32', rank, size);
  const buffer = guarded('float32', count, pattern);
  const sum = reducedPattern('sum', 'float32', size);
  const faultAt = (wrong: number) => (wrong < 0 ? null : `element ${wrong} is wrong`);
  switch (kind) {
    case 0:
      return [group.allReduce(buffer.like), () => faultAt(firstWrong(buffer.elements, sum))];
    case 1: {
      const root = count % size;
      const expected = inputPattern('sum', 'float32', root, size);
      return [group.broadcast(buffer.like, { root }), () => faultAt(firstWrong(buffer.elements, expected))];
    }
    case 2: {
      const output = guarded('float32', count * size);
      const part = () => output.elements.subarray(rank * count, (rank + 1) * count);
      return [group.allGather(buffer.like, output.like), () => faultAt(firstWrong(part(), pattern))];
    }
    case 3: {
      const input = guarded('float32', count * size, pattern);
      const check = () => faultAt(firstWrong(buffer.elements, sum, rank * count));
      return [group.reduceScatter(input.like, buffer.like), check];
    }
    default:
      return [group.barrier(), () => null];
  }
}

/** Checks that a Sync call runs after all operations before it, and that a fence waits for its own operation. */
export async function syncAfterAsync(group: Group): Promise<Report> {
  const report: Report = { checks: 0, faults: [] };
  const expect = (holds: boolean, fault: string) => {
    report.checks++;
    if (!holds) report.faults.push(fault);
  };
  const { size } = group;
  for (const count of [1, 100, 50_000]) {
    const early = new Float32Array(count).fill(1);
    const middle = new Float32Array(count).fill(2);
    const late = new Float32Array(count).fill(3);
    const first = group.allReduce(early);
    group.allReduceSync(middle);
    expect(
      middle.every((x) => x === 2 * size),
      `Sync call among ${count} elements has a wrong result`,
    );
    expect(
      early.every((x) => x === size),
      `a Sync call overtook an operation of ${count} elements`,
    );
    const second = group.allReduce(late);
    second.fence();
    expect(second.done, 'an operation was not done after its fence');
    expect(
      late.every((x) => x === 3 * size),
      `a fence of ${count} elements returned too early`,
    );
    await first;
    expect(first.done, 'an awaited operation was not done');
    await second;
    group.barrierSync();
  }
  return report;
}

const floats = ['float32', 'float64', 'float16', 'bfloat16', 'float8_e4m3fn', 'float8_e5m2'] as const;

/** Returns digests of reductions of random floats. All ranks must return the same list, in every run. */
export async function digests(group: Group, mode: Mode): Promise<string[]> {
  const found: string[] = [];
  const { rank } = group;
  for (const dtype of floats) {
    for (const op of ['sum', 'avg', 'prod', 'premulSum'] as const) {
      if (!group.supports.reduces(op, dtype)) continue;
      for (const count of [5, 1003, 65_537]) {
        const view = allocHost(count, dtype);
        const elements = elementsOf(view);
        const random = randomFloats(rank + count);
        const encode = isNarrowFloat(dtype) ? narrowFloats[dtype].to : (x: number) => x;
        for (let i = 0; i < count; i++) elements[i] = encode(random());
        const options = op === 'premulSum' ? { op, factor: 0.3 + rank } : { op };
        const like = { data: elements, dtype } as const;
        if (mode === 'sync') group.allReduceSync(like, options);
        else await group.allReduce(like, options);
        const bytes = new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength);
        found.push(`${op} ${count} × ${dtype} ${createHash('sha256').update(bytes).digest('hex')}`);
      }
    }
  }
  return found;
}

/** Checks that memory from alloc() is zeroed, has the right type and works in collectives. */
export async function allocated(group: Group): Promise<Report> {
  const report: Report = { checks: 0, faults: [] };
  for (const dtype of dtypes) {
    if (!group.supports.reduces('max', dtype)) continue;
    for (const count of [0, 1, 1000]) {
      report.checks++;
      const like: Allocated<typeof dtype> = group.alloc(count, dtype);
      const elements = 'data' in like ? like.data : like;
      const isZero = elements.length === count && elements.every((x: number | bigint) => Number(x) === 0);
      if (!isZero) report.faults.push(`alloc ${count} × ${dtype} is not zeroed, or not as long`);
      const pattern = inputPattern('max', dtype, group.rank, group.size);
      for (let i = 0; i < count; i++) elements[i] = pattern[i % pattern.length] as never;
      await group.allReduce(like, { op: 'max' });
      const wrong = firstWrong(elements, reducedPattern('max', dtype, group.size));
      if (wrong >= 0) report.faults.push(`allReduce of alloc ${count} × ${dtype}: element ${wrong} is wrong`);
    }
  }
  return report;
}

/** Reduces 20 elements, each NaN on one rank, by min and max. Returns how many results are NaN: all must be. */
export async function nanWins(group: Group): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const dtype of floats) {
    for (const op of ['min', 'max'] as const) {
      if (!group.supports.reduces(op, dtype)) continue;
      const elements: ArrayOf<typeof dtype> = elementsOf(allocHost(20, dtype));
      const { from, to } = isNarrowFloat(dtype) ? narrowFloats[dtype] : { from: Number, to: Number };
      for (let i = group.rank; i < 20; i += group.size) elements[i] = to(Number.NaN);
      await group.allReduce({ data: elements, dtype }, { op });
      found[`${op} ${dtype}`] = Array.from(elements).filter((x) => Number.isNaN(from(x))).length;
    }
  }
  return found;
}
