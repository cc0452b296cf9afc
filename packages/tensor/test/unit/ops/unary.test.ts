// Tests functions of each element.
import { describe, expect, test } from 'vitest';
import {
  abs,
  ceil,
  elu,
  floor,
  gelu,
  gradCheck,
  leakyRelu,
  neg,
  relu,
  round,
  sign,
  square,
  type Tensor,
  tensor,
  trunc,
} from '../../../src/index.ts';
import * as ops from '../../../src/ops/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { unaries } from '../../support/kernels-oracle.ts';
import { gradientsOf } from '../../support/leaf64.ts';

const positive = [0.3, 1.7, 2.5, 0.9];
const signed = [-1.4, 0.6, -0.2, 2.2];
const withinOne = [-0.7, 0.6, -0.2, 0.4];
const aboveOne = [1.3, 1.7, 2.5, 1.9];
const needPositive = ['log', 'sqrt', 'rsqrt', 'log1p', 'log2', 'log10'];
const needWithinOne = ['asin', 'acos', 'atanh', 'erfinv', 'tan'];

/** Returns numbers for which a function is defined and well conditioned. */
function inputsOf(name: string): number[] {
  if (needWithinOne.includes(name)) return withinOne;
  if (name === 'acosh') return aboveOne;
  return needPositive.includes(name) ? positive : signed;
}
const { logicalNot: _, ...functions } = unaries;

const all: Readonly<Record<string, unknown>> = {
  ...ops,
  geluTanh: (a: Tensor) => gelu(a, { approximate: 'tanh' }),
};

describe.each(Object.entries(functions))('%s', (name, want) => {
  const op = all[name] as (a: Tensor) => Tensor;
  const inputs = inputsOf(name);

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
    const [others, shift] =
      name === 'acosh' ? [aboveOne, 0.6] : [inputs === withinOne ? inputs : positive, 0.1];
    gradCheck((x) => op(x!.t().mul(0.5).add(shift)), [leaf(others)], options);
  });

  test('computes integers in float32 where they give fractions, and halves in their dtype', () => {
    const isExact = ['neg', 'abs', 'sign', 'square', 'relu', 'floor', 'ceil', 'round', 'trunc'].includes(
      name,
    );
    const isOfFloats = ['gelu', 'geluTanh', 'silu'].includes(name);
    const integers = tensor([1], { dtype: 'int32' });
    if (isOfFloats) expect(codeOf(() => op(integers))).toBe('ERR_TENSOR_DTYPE');
    else expect(op(integers).dtype).toBe(isExact ? 'int32' : 'float32');
    const number = inputs === withinOne ? 0.625 : 2;
    const half = op(tensor([0.5, number], { dtype: 'float16' }));
    expect(half.dtype).toBe('float16');
    expect((half.toArray() as number[])[1]).toBeCloseTo(want(number), 2);
  });
});

test('relu and abs have gradient 0 at 0', () => {
  for (const op of [relu, abs]) {
    const x = tensor([0, -3, 3], { requiresGrad: true });
    op(x).sum().backward();
    expect(x.grad!.toArray()).toEqual([0, op === relu ? 0 : -1, 1]);
  }
});

describe('at the edge, as in PyTorch', () => {
  test('sign of NaN is 0, and so is the gradient of abs there', () => {
    for (const dtype of ['float32', 'float64', 'float16', 'bfloat16'] as const)
      expect(sign(tensor([NaN, -3, 0, Infinity], { dtype })).toArray()).toEqual([0, -1, 0, 1]);
    expect(gradientsOf(abs, [-2, 0, NaN])).toEqual([[-1, 0, 0]]);
  });

  test('elu passes the gradient on at NaN', () => {
    const [[missing, zero, below]] = gradientsOf((x) => elu(x), [NaN, 0, -1]) as [number[]];
    expect([missing, zero]).toEqual([1, 1]);
    expect(below).toBeCloseTo(0.3678794412, 9);
  });

  test('rounding keeps integers that float32 cannot hold', () => {
    const large = tensor([2n ** 53n - 1n]);
    for (const op of [floor, ceil, round, trunc]) expect(op(large).item()).toBe(2 ** 53 - 1);
    const copy = floor(large);
    copy.fill_(0);
    expect(large.item()).toBe(2 ** 53 - 1);
  });

  test('operations that bool or integers do not have are refused', () => {
    const mask = tensor([true, false]);
    expect(() => neg(mask)).toThrow("neg: expected numbers, got bool. Use logicalNot, or .to('int32').");
    expect(() => gelu(mask)).toThrow('gelu: expected a floating dtype, got bool');
    expect(() => leakyRelu(tensor([1n]))).toThrow('leakyRelu: expected a floating dtype, got int64');
    expect(square(mask)).toMatchObject({ dtype: 'int64' });
    expect(square(mask).toArray()).toEqual([1, 0]);
  });
});
