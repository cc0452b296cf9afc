// Tests the members that parameters on a device must have, and the errors if they lack them. The tests need no
// device; packages/ringwise/test/full/devices/device-ddp.test.ts uses one.
import { type BufferView, loopbackGroups } from '@ringwise/collectives';
import { afterEach, expect, it } from 'vitest';
import { inSync, planBuckets, Reducer } from '../../../src/index.ts';
import type { BucketParam } from '../../../src/reducer/bucket.ts';
import { reasons } from '../../support/ranks.ts';

const device = { kind: 'cuda', index: 1 } as const;
const far: BufferView = {
  dtype: 'float32',
  count: 4,
  device,
  host: null,
  handle: { address: 512n, owner: {} },
};
const limits = { bucketBytes: 64, firstBucketBytes: 64 };

let groups = loopbackGroups(1);
afterEach(async () => {
  await Promise.all(groups.map((group) => group.close()));
});

function reducerOf(param: BucketParam, size: number): Reducer {
  groups = loopbackGroups(size);
  return new Reducer([param], planBuckets([far], limits), groups[0]!);
}

it('allocBucket and bindGrad, to average their gradients', () => {
  const expected = expect.objectContaining({
    code: 'ERR_DDP_INVALID',
    params: ['w'],
    message: expect.stringMatching(/^ddp: "w" is in cuda:1 memory, but its autograd has no allocBucket/),
  });
  expect(() => reducerOf({ name: 'w', grad: null }, 2)).toThrow(expected);
  expect(() => reducerOf({ name: 'w', grad: null, bindGrad: () => {} }, 2)).toThrow(expected);
});

it('divideGrad, for weights in a group of one', async () => {
  const divisors: number[] = [];
  const withIt = reducerOf({ name: 'w', grad: far, divideGrad: (by) => divisors.push(by) }, 1);
  withIt.addWeight(3);
  withIt.ready(0);
  await withIt.finish();
  expect(divisors).toEqual([3]);
  const without = reducerOf({ name: 'w', grad: far }, 1);
  without.addWeight(3);
  without.ready(0);
  await expect(without.finish()).rejects.toThrow(/^backward: the gradient of "w" is in memory/);
});

it('readValue, to compare ranks', async () => {
  groups = loopbackGroups(2);
  const compare = (second: number) =>
    Promise.all(
      groups.map((group) => {
        const readValue = () => Float32Array.of(1, group.rank === 0 ? 2 : second);
        return inSync([{ name: 'w', value: far, readValue }], group);
      }),
    );
  expect(await compare(2)).toEqual([true, true]);
  expect(await compare(3)).toEqual([false, false]);
  const unread = groups.map((group) => inSync([{ name: 'w', value: far }], group));
  for (const { message } of reasons(await Promise.allSettled(unread))) {
    expect(message).toMatch(/^inSync: "w" is in cuda memory/);
  }
});
