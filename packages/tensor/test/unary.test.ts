import { describe, expect, test } from 'vitest';
import { abs, gelu, gradCheck, relu, type Tensor, tensor } from '../src/index.ts';
import * as ops from '../src/ops/index.ts';
import { unaries } from './kernels-oracle.ts';

const positive = [0.3, 1.7, 2.5, 0.9];
const signed = [-1.4, 0.6, -0.2, 2.2];
const needPositive = ['log', 'sqrt', 'rsqrt'];
const { logicalNot: _, ...functions } = unaries;

const all: Readonly<Record<string, unknown>> = {
  ...ops,
  geluTanh: (a: Tensor) => gelu(a, { approximate: 'tanh' }),
};

describe.each(Object.entries(functions))('%s', (name, want) => {
  const op = all[name] as (a: Tensor) => Tensor;
  const inputs = needPositive.includes(name) ? positive : signed;

  test('computes each element, also of a part that lies strided', () => {
    const got = op(tensor(inputs, { shape: [2, 2] }).t());
    expect(got.shape).toEqual([2, 2]);
    for (const [i, x] of [0, 2, 1, 3].entries()) expect(got.dataSync()[i]).toBeCloseTo(want(inputs[x]!), 5);
  });

  test('has the right gradient', () => {
    const leaf = (values: number[]): Tensor =>
      tensor(values, { dtype: 'float64', shape: [2, 2], requiresGrad: true });
    const options = { epsilon: 1e-5, tolerance: 1e-7 };
    gradCheck((x) => op(x!), [leaf(inputs)], options);
    gradCheck((x) => op(x!.t().mul(0.5).add(0.1)), [leaf(positive)], options);
  });

  test('computes integers in float32 where they give fractions, and halves in their dtype', () => {
    const isExact = ['neg', 'abs', 'sign', 'square', 'relu'].includes(name);
    expect(op(tensor([1], { dtype: 'int32' })).dtype).toBe(isExact ? 'int32' : 'float32');
    const half = op(tensor([0.5, 2], { dtype: 'float16' }));
    expect(half.dtype).toBe('float16');
    expect((half.toArray() as number[])[1]).toBeCloseTo(want(2), 2);
  });
});

test('relu and abs have gradient 0 at 0', () => {
  for (const op of [relu, abs]) {
    const x = tensor([0, -3, 3], { requiresGrad: true });
    op(x).sum().backward();
    expect(x.grad!.toArray()).toEqual([0, op === relu ? 0 : -1, 1]);
  }
});
