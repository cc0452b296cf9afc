import { describe, expect, test } from 'vitest';
import { abs, exp, gradCheck, log, neg, relu, sigmoid, sqrt, square, tanh, tensor } from '../src/index.ts';
import { codeOf } from './code-of.ts';

const values = [0.3, 1.7, 2.5, 0.9];
const signed = [-1.4, 0.6, -0.2, 2.2];

describe.each([
  ['neg', neg, (x: number) => -x, signed],
  ['exp', exp, Math.exp, signed],
  ['log', log, Math.log, values],
  ['sqrt', sqrt, Math.sqrt, values],
  ['square', square, (x: number) => x * x, signed],
  ['abs', abs, Math.abs, signed],
  ['relu', relu, (x: number) => Math.max(0, x), signed],
  ['sigmoid', sigmoid, (x: number) => 1 / (1 + Math.exp(-x)), signed],
  ['tanh', tanh, Math.tanh, signed],
] as const)('%s', (_, op, want, inputs) => {
  test('computes each element', () => {
    const got = op(tensor(inputs, { shape: [2, 2] }));
    expect(got.shape).toEqual([2, 2]);
    for (const [i, x] of inputs.entries()) expect(got.dataSync()[i]).toBeCloseTo(want(x), 5);
  });

  test('has the right gradient', () => {
    gradCheck((x) => op(x!), [tensor(inputs, { requiresGrad: true })]);
    gradCheck((x) => op(op(x!).mul(0.5).add(1)), [tensor(values, { requiresGrad: true })]);
  });

  test('refuses integers', () => {
    expect(codeOf(() => op(tensor([1], { dtype: 'int32' })))).toBe('ERR_TENSOR_DTYPE');
  });
});

test('relu and abs have gradient 0 at 0', () => {
  for (const op of [relu, abs]) {
    const x = tensor([0, -3, 3], { requiresGrad: true });
    op(x).sum().backward();
    expect(x.grad!.toArray()).toEqual([0, op === relu ? 0 : -1, 1]);
  }
});
