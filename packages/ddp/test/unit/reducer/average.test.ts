import { expect, it } from 'vitest';
import { averageGradients } from '../../../src/index.ts';
import { onRanks, reasons, values } from '../../support/ranks.ts';

const small = (rank: number) => Float32Array.from({ length: 5 }, (_, i) => 4 * rank + i);

it('averages gradients of several dtypes and sizes in place', async () => {
  const averaged = values(
    await onRanks(4, async (group) => {
      const half = { data: new Uint16Array([0x3c00, 0x4000]), dtype: 'float16' as const }; // 1, 2
      const large = new Float32Array(7 * 2 ** 20).fill(group.rank); // more than a bucket
      const double = new Float64Array(3).fill(group.rank);
      const grads = [small(group.rank), half, large, double, new Float32Array(0), small(group.rank)];
      await averageGradients(grads, group);
      return grads.map((grad) => [...('data' in grad ? grad.data : grad.subarray(-5))]);
    }),
  );
  for (const grads of averaged)
    expect(grads).toEqual([
      [6, 7, 8, 9, 10],
      [0x3c00, 0x4000],
      [1.5, 1.5, 1.5, 1.5, 1.5],
      [1.5, 1.5, 1.5],
      [],
      [6, 7, 8, 9, 10],
    ]);
});

it('leaves the gradients of a group of one alone', async () => {
  const grads = [small(3), small(4)];
  values(await onRanks(1, (group) => averageGradients(grads, group)));
  expect(grads).toEqual([small(3), small(4)]);
});

it('fails on all ranks when their lists differ', async () => {
  const outcomes = await onRanks(2, (group) =>
    averageGradients(group.rank === 0 ? [small(0)] : [small(0), small(1)], group),
  );
  for (const error of reasons(outcomes)) expect(error.code).toBe('ERR_COLL_MISMATCH');
});

it.each([1, 2])('refuses what are no gradients in a group of %i', async (size) => {
  for (const [grads, code] of [
    [undefined, 'ERR_DDP_INVALID'],
    [5, 'ERR_DDP_INVALID'],
    [[1], 'ERR_COLL_INVALID'],
  ] as const) {
    const outcomes = await onRanks(size, (group) => averageGradients(grads as never, group));
    for (const error of reasons(outcomes)) expect(error.code).toBe(code);
  }
});

it('asks for a list when it gets one gradient', async () => {
  const [error] = reasons(await onRanks(1, (group) => averageGradients(small(3) as never, group)));
  expect(error!.message).toMatch(
    /^averageGradients: grads: expected a list of gradients, got one \w+: put it into a list\.$/,
  );
});
