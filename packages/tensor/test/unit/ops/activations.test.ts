// Activations: what they refuse, and what the generator of cases cannot tell.
import { describe, expect, test } from 'vitest';
import {
  celu,
  elu,
  glu,
  grad,
  hardsigmoid,
  hardswish,
  hardtanh,
  logSigmoid,
  mish,
  prelu,
  relu6,
  selu,
  softplus,
  softshrink,
  tensor,
  threshold,
  zeros,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';

describe('softplus', () => {
  test('follows beta, and returns what is above the threshold, as PyTorch does', () => {
    const x = tensor([-1, 0.5, 1, 30], { dtype: 'float64' });
    // log(1 + exp(20.5)) is 20.500000001250156.
    expect(softplus(tensor([20.5], { dtype: 'float64' })).toArray()).toEqual([20.5]);
    const close = (value: number): unknown => expect.closeTo(value, 12);
    expect(softplus(x, 2, 1.5).toArray()).toEqual([
      close(Math.log1p(Math.exp(-2)) / 2),
      close(Math.log1p(Math.exp(1)) / 2),
      1,
      30,
    ]);
    gradCheck64((a) => softplus(a!, 2, 1.5), [leaf64([20], 3)]);
    expect(() => softplus(x, '2' as never)).toThrow('softplus: expected beta to be a number');
  });
});

describe('activations', () => {
  test('refuse dtypes and arguments that they do not have', () => {
    const whole = tensor([1, 2], { dtype: 'int32' });
    expect(() => mish(whole)).toThrow("mish: expected a floating dtype, got int32. Use .to('float32').");
    expect(() => relu6(tensor([1], { dtype: 'bool' }))).toThrow('relu6: expected numbers, got bool.');
    expect(codeOf(() => hardtanh(tensor([1]), 1, -1))).toBe('ERR_TENSOR_ARGUMENT');
    expect(() => hardtanh(tensor([1], { dtype: 'uint8' }))).toThrow(
      "hardtanh: expected limits ≥ 0 for uint8, got -1. Use .to('int32').",
    );
    expect(() => threshold(whole, '1' as never, 0)).toThrow(
      "threshold: expected threshold to be a number, got the string '1'.",
    );
    expect(() => softshrink(tensor([1]), -1)).toThrow('softshrink: lambda: expected a number ≥ 0, got -1.');
    expect(() => celu(tensor([1]), 0)).toThrow('celu: expected an alpha other than 0, got 0.');
    expect(() => hardsigmoid([1] as never)).toThrow('hardsigmoid: expected a tensor, got the array [1].');
  });

  test('glu refuses an odd size', () => {
    expect(() => glu(zeros([2, 3]))).toThrow(
      'glu: expected an even size of dimension 1, which is split into halves, got shape [2, 3].',
    );
    expect(codeOf(() => glu(zeros([2, 4]), 2))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => glu(tensor(1)))).toBe('ERR_TENSOR_SHAPE');
    expect(glu(tensor([[2], [0]]), 0).toArray()).toEqual([[1]]);
  });

  test('prelu takes one slope, or one for each channel', () => {
    const x = tensor([
      [-1, 2],
      [-4, -8],
    ]);
    expect(prelu(x, tensor([0.5, 0.25])).toArray()).toEqual([
      [-0.5, 2],
      [-2, -2],
    ]);
    expect(() => prelu(x, tensor([1, 2, 3]))).toThrow(
      'prelu: expected a weight of one element or of [2], one for each channel of [2, 2], got [3].',
    );
    expect(codeOf(() => prelu(x, tensor([1], { dtype: 'float64' })))).toBe('ERR_TENSOR_DTYPE');
  });

  test('logSigmoid does not overflow', () => {
    expect(logSigmoid(tensor([-1000, 1000])).toArray()).toEqual([-1000, 0]);
  });

  test('gradients agree with differences of results', () => {
    for (const fn of [mish, selu, logSigmoid, hardswish, glu])
      expect(() => gradCheck64((x) => fn(x), [leaf64([2, 4])]), fn.name).not.toThrow();
    expect(() =>
      gradCheck64((x, weight) => prelu(x, weight!), [leaf64([2, 4, 3]), leaf64([4], 2)]),
    ).not.toThrow();
  });

  test('results and gradients near 0 keep their digits', () => {
    const inputs = [-40, -17, -1e-3, -1e-6, -1e-9];
    const x = tensor(inputs);
    const seluScale = 1.0507009873554805 * 1.6732632423543772;
    const softplusOf = (v: number): number => Math.log1p(Math.exp(v));
    const functions: readonly (readonly [(a: typeof x) => typeof x, (v: number) => number])[] = [
      [elu, Math.expm1],
      [(a) => celu(a, 2), (v) => 2 * Math.expm1(v / 2)],
      [selu, (v) => seluScale * Math.expm1(v)],
      [softplus, softplusOf],
      [(a) => logSigmoid(a.neg()), (v) => -softplusOf(v)],
      [mish, (v) => v * Math.tanh(softplusOf(v))],
    ];
    for (const [ours, exact] of functions) {
      for (const [i, value] of (ours(x).toArray() as number[]).entries()) {
        const wanted = exact(Math.fround(inputs[i]!));
        expect(Math.abs(value / wanted - 1)).toBeLessThan(1e-6);
      }
    }
  });

  test('gradients to the third order are numbers where powers overflow', () => {
    const x = tensor([-200, -100, 100, 200], { requiresGrad: true });
    for (const fn of [elu, celu, selu, softplus, mish, logSigmoid]) {
      let out = fn(x);
      for (let order = 1; order <= 3; order++) {
        [out] = grad(out.sum(), x, { createGraph: true }) as [typeof x];
        expect(out.isfinite().all().item()).toBe(1);
      }
    }
  });
});
