// Scenarios with the object forms.
import { isDeepStrictEqual } from 'node:util';
import type { Group } from '../../src/group/group.ts';
import { anySource } from '../../src/options/options.ts';
import { invoke, type Mode } from '../invoke.ts';
import { expect, newReport, type Report } from '../report.ts';

/** Returns a value that structured clone accepts and whose encoded length depends on the rank. */
function exampleOf(rank: number) {
  return {
    rank,
    text: 'ü'.repeat(rank * 40_000),
    nested: { list: [1, null, undefined, 2n ** 70n], date: new Date(rank * 1e9), pattern: /x+/giu },
    map: new Map([[rank, new Set(['a', 'b'])]]),
    bytes: Float64Array.from({ length: rank * 3 }, (_, i) => i / 3),
    error: new RangeError(`of rank ${rank}`).message,
  };
}
type Value = ReturnType<typeof exampleOf>;

/** Tests every object form, several at a time, with collectives between them. */
export async function objectForms(group: Group, mode: Mode): Promise<Report> {
  const report = newReport();
  const { rank, size } = group;
  const all = Array.from({ length: size }, (_, other) => exampleOf(other));
  const expectEqual = (got: unknown, wanted: unknown, what: string) =>
    expect(report, isDeepStrictEqual(got, wanted), `${what} gave something else`);
  for (let root = 0; root < size; root++) {
    const isRoot = rank === root;
    const mine = all[rank] as Value;
    const sent = await invoke(group, mode, 'broadcastObject', isRoot ? mine : undefined, { root });
    expectEqual(sent, all[root], 'broadcastObject');
    expect(report, sent !== mine, 'broadcastObject gave the value itself and no copy');
    const gathered = await invoke(group, mode, 'gatherObject', mine, { root });
    expectEqual(gathered, isRoot ? all : null, 'gatherObject');
    const part = await invoke(group, mode, 'scatterObject', isRoot ? all : null, { root });
    expectEqual(part, mine, 'scatterObject');
  }
  expectEqual(await invoke(group, mode, 'allGatherObject', all[rank]), all, 'allGatherObject');
  expectEqual(
    await invoke(group, mode, 'allGatherObject', undefined),
    all.map(() => undefined),
    'allGatherObject',
  );
  return report;
}

/** Checks that a call after an object form runs after all of its steps, although the later ones start late. */
export async function objectsInOrder(group: Group): Promise<Report> {
  const report = newReport();
  const { rank, size } = group;
  const x = new Float32Array(1000).fill(1);
  const first = group.allGatherObject({ from: rank, filler: 'x'.repeat(rank * 1000) });
  const sum = group.allReduce(x);
  const second = group.broadcastObject(rank === 0 ? 'second' : undefined);
  const barrier = group.barrier();
  const third = group.gatherObject(rank, { root: size - 1 });
  const ended: string[] = [];
  await Promise.all([
    first.then(() => ended.push('first')),
    sum.then(() => ended.push('sum')),
    second.then(() => ended.push('second')),
    barrier.then(() => ended.push('barrier')),
    third.then(() => ended.push('third')),
  ]);
  expect(report, ended.join() === 'first,sum,second,barrier,third', `they ended in the order ${ended}`);
  expect(
    report,
    x.every((value) => value === size),
    'allReduce behind an object form is wrong',
  );
  expect(
    report,
    (await first).every(({ from }, index) => from === index),
    'allGatherObject is wrong',
  );
  expect(report, (await second) === 'second', 'broadcastObject is wrong');
  const expected = rank === size - 1 ? [...Array(size).keys()].join() : undefined;
  expect(report, (await third)?.join() === expected, 'gatherObject is wrong');
  return report;
}

/** Makes Sync calls and fences while object forms are pending. */
export async function objectsBeforeSync(group: Group): Promise<Report> {
  const report = newReport();
  const { rank, size } = group;
  const x = new Float32Array(10).fill(1);
  const pending = group.allGatherObject('x'.repeat(rank * 10_000));
  group.allReduceSync(x);
  expect(report, x[0] === size, 'allReduceSync behind an object form is wrong');
  const early = group.broadcastObject(rank === 0 ? [1, 2] : undefined);
  const sum = group.allReduce(x);
  const late = group.gatherObject(rank);
  sum.fence();
  expect(report, x[0] === size * size, 'a fence behind an object form is wrong');
  expect(report, (late.fence()?.length ?? size) === size, 'the fence of gatherObject gave something else');
  expect(report, early.fence().join() === '1,2', 'the fence of broadcastObject gave something else');
  expect(
    report,
    (await pending).every(({ length }, from) => length === from * 10_000),
    'allGatherObject is wrong',
  );
  return report;
}

/** Sends objects to the next rank, several at once and received out of order, and from any rank to rank 0. */
export async function objectMessages(group: Group, mode: Mode): Promise<Report> {
  const report = newReport();
  const { rank, size } = group;
  const next = (rank + 1) % size;
  const previous = (rank + size - 1) % size;
  const sends = [2, 1, 2].map((tag, index) => group.sendObject({ index, from: rank }, next, { tag }));
  const order = [
    [1, 1],
    [2, 0],
    [2, 2],
  ] as const;
  const recvs = mode === 'async' ? order.map(([tag]) => group.recvObject(previous, { tag })) : [];
  for (const [at, [tag, index]] of order.entries()) {
    const got = recvs[at] ? await recvs[at] : group.recvObjectSync(previous, { tag });
    const isRight = isDeepStrictEqual(got, { value: { index, from: previous }, source: previous });
    expect(report, isRight, `the object with tag ${tag} is ${JSON.stringify(got)}`);
  }
  await Promise.all(sends);
  if (rank !== 0) await invoke(group, mode, 'sendObject', `from ${rank}`, 0);
  for (let left = rank === 0 ? size - 1 : 0; left > 0; left--) {
    const { value, source } = await invoke(group, mode, 'recvObject', anySource);
    expect(report, value === `from ${source}`, `rank ${source} sent ${value}`);
  }
  await group.barrier();
  return report;
}
