import * as tf from '@tensorflow/tfjs';
import { beforeAll, expect, it } from 'vitest';
import { shard } from '../../src/index.ts';

beforeAll(async () => {
  await tf.setBackend('cpu');
});

const rows = (count: number) =>
  tf.tensor2d(
    Array.from({ length: count * 2 }, (_, i) => i),
    [count, 2],
  );

it('gives every rank each size-th row, equally many', () => {
  const parts = [0, 1, 2].map((rank) => shard(rows(8), { rank, size: 3 }).arraySync());
  expect(parts).toEqual([
    [
      [0, 1],
      [6, 7],
    ],
    [
      [2, 3],
      [8, 9],
    ],
    [
      [4, 5],
      [10, 11],
    ],
  ]); // rows 6 and 7 are left out
});

it('keeps dtypes, lists and names', () => {
  const labels = tf.tensor1d([1, 2, 3, 4], 'int32');
  const [x, y] = shard([rows(4), labels], { rank: 1, size: 2 });
  expect(x!.shape).toEqual([2, 2]);
  expect([y!.dtype, ...y!.dataSync()]).toEqual(['int32', 2, 4]);
  const named = shard({ a: labels, b: rows(4) }, { rank: 0, size: 4 });
  expect([...named.a.dataSync()]).toEqual([1]);
  expect(named.b.arraySync()).toEqual([[0, 1]]);
});

it('makes one tensor, also for one rank', () => {
  const all = rows(4);
  const before = tf.memory().numTensors;
  const own = shard(all, { rank: 0, size: 1 });
  expect(own.arraySync()).toEqual(all.arraySync());
  expect(tf.memory().numTensors).toBe(before + 1);
});

it.each([
  ['no group', () => shard(rows(4), undefined as never), 'no group'],
  ['a number', () => shard(4 as never, { rank: 0, size: 2 }), 'something else'],
  ['a scalar', () => shard(tf.scalar(1), { rank: 0, size: 2 }), 'something else'],
  ['nothing', () => shard([], { rank: 0, size: 2 }), 'something else'],
  ['too few rows', () => shard(rows(2), { rank: 0, size: 3 }), '2 for 3 ranks'],
  ['other lengths', () => shard([rows(2), rows(4)], { rank: 0, size: 2 }), '2 and 4'],
])('refuses %s', (_, call, got) => {
  expect(call).toThrow(
    expect.objectContaining({ code: 'ERR_TFJS_INVALID', message: expect.stringContaining(got) }),
  );
});
