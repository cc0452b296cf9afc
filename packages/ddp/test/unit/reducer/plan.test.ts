import type { Device, DType } from '@ringwise/collectives';
import { byteSize } from '@ringwise/collectives';
import { expect, it } from 'vitest';
import { type PlanParam, planBuckets, planHash } from '../../../src/index.ts';

const cpu: Device = { kind: 'cpu', index: 0 };
const param = (count: number, dtype: DType = 'float32', device = cpu): PlanParam => ({
  count,
  dtype,
  device,
});
const members = (plan: ReturnType<typeof planBuckets>) =>
  plan.map(({ slots }) => slots.map((slot) => slot.param));

it('fills buckets in reverse order of definition, the first one up to its own limit', () => {
  const params = Array.from({ length: 6 }, () => param(256)); // 1 KiB each
  expect(members(planBuckets(params, { bucketBytes: 3072, firstBucketBytes: 1024 }))).toEqual([
    [5],
    [4, 3, 2],
    [1, 0],
  ]);
});

it('closes a bucket with the parameter that reaches the limit', () => {
  // The second matrix of this multilayer perceptron (784-512-512-10) has exactly 1 MiB.
  const params = [512 * 784, 512, 512 * 512, 512, 10 * 512, 10].map((count) => param(count));
  const plan = planBuckets(params, { bucketBytes: 25 * 2 ** 20, firstBucketBytes: 2 ** 20 });
  expect(members(plan)).toEqual([
    [5, 4, 3, 2],
    [1, 0],
  ]);
});

it('keeps devices and dtypes apart and orders buckets by their last member', () => {
  const cuda: Device = { kind: 'cuda', index: 0 };
  const params = [
    param(1),
    param(1, 'float16'),
    param(1, 'float32', cuda),
    param(1, 'float16'),
    param(1, 'float32', cuda),
    param(1),
  ];
  const plan = planBuckets(params, { bucketBytes: 1 << 20, firstBucketBytes: 1 << 20 });
  expect(members(plan)).toEqual([
    [4, 2],
    [3, 1],
    [5, 0],
  ]);
  expect(plan.map(({ dtype, device }) => `${device.kind} ${dtype}`)).toEqual([
    'cuda float32',
    'cpu float16',
    'cpu float32',
  ]);
});

it('starts every slot at a multiple of 64 bytes, in order and without overlap', () => {
  for (const dtype of ['float16', 'float32', 'float64'] as const) {
    const params = [3, 64, 0, 17, 1].map((count) => param(count, dtype));
    const [bucket] = planBuckets(params, { bucketBytes: 1 << 20, firstBucketBytes: 1 << 20 });
    let end = 0;
    for (const { offset, count } of bucket!.slots) {
      expect((offset * byteSize(dtype)) % 64).toBe(0);
      expect(offset).toBeGreaterThanOrEqual(end);
      end = offset + count;
    }
    expect(bucket!.count).toBe(end);
  }
});

it('places every parameter exactly once, also empty ones and ones larger than a bucket', () => {
  const counts = [0, 1, 5000, 0, 12, 300, 7, 0];
  const plan = planBuckets(
    counts.map((count) => param(count)),
    { bucketBytes: 1024, firstBucketBytes: 16 },
  );
  const slots = plan.flatMap((bucket) => bucket.slots).sort((a, b) => a.param - b.param);
  expect(slots.map((slot) => slot.param)).toEqual([...counts.keys()]);
  expect(slots.map((slot) => slot.count)).toEqual(counts);
});

it('makes one bucket without limits and none without parameters', () => {
  const limits = { bucketBytes: Number.POSITIVE_INFINITY, firstBucketBytes: Number.POSITIVE_INFINITY };
  expect(members(planBuckets([param(1 << 20), param(1 << 20)], limits))).toEqual([[1, 0]]);
  expect(planBuckets([], limits)).toEqual([]);
});

it('hashes the layout: equal for equal plans and on any index of a device, else different', () => {
  const plan = (limit: number, ...params: PlanParam[]) =>
    planHash(planBuckets(params, { bucketBytes: limit, firstBucketBytes: limit }));
  const on = (index: number) => param(8, 'float32', { kind: 'cuda', index });
  expect(plan(64, param(8), param(9))).toBe(plan(64, param(8), param(9)));
  expect(plan(64, on(0), on(0))).toBe(plan(64, on(1), on(1)));
  const different = [
    plan(64, param(8), param(9)),
    plan(16, param(8), param(9)),
    plan(64, param(9), param(8)),
    plan(64, param(8, 'float64'), param(9)),
    plan(64, on(0), param(9)),
    plan(64, on(0), on(0)),
    plan(64, on(0), on(1)),
  ];
  expect(new Set(different).size).toBe(different.length);
});
