// Tests clipGradNorm and clipGradValue.
import { expect, test } from 'vitest';
import { ones, type Tensor, tensor } from '../../../src/index.ts';
import { parameter } from '../../../src/nn/index.ts';
import { clipGradNorm, clipGradValue } from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';

function withGrads(...grads: number[][]): Tensor[] {
  return grads.map((values) => {
    const param = parameter(ones([values.length]));
    param.mul(tensor(values)).sum().backward();
    return param;
  });
}
const gradsOf = (params: readonly Tensor[]): unknown[] => params.map((param) => param.grad?.toArray());

test('clipGradNorm scales all gradients together, and returns the norm before', () => {
  const params = [...withGrads([3, 0], [4]), parameter(ones([1]))];
  const norm = clipGradNorm(params, 1);
  expect([norm.item(), norm.requiresGrad]).toEqual([5, false]);
  const [[a], [b], none] = gradsOf(params) as [number[], number[], undefined];
  expect(a).toBeCloseTo(0.6, 5);
  expect(b).toBeCloseTo(0.8, 5);
  expect(none).toBeUndefined();
});

test('clipGradNorm leaves gradients alone that are short enough', () => {
  const params = withGrads([3, 0], [4]);
  expect(clipGradNorm(params, 10).item()).toBe(5);
  expect(gradsOf(params)).toEqual([[3, 0], [4]]);
  expect(clipGradNorm([], 1).item()).toBe(0);
});

test('clipGradNorm takes other norms', () => {
  const most = withGrads([3, -8], [4]);
  expect(clipGradNorm(most, 4, { normType: Infinity }).item()).toBe(8);
  expect((gradsOf(most)[0] as number[])[1]).toBeCloseTo(-4, 5);
  const sum = withGrads([3, -8], [4]);
  expect(clipGradNorm(sum, 1.5, { normType: 1 }).item()).toBe(15);
  expect((gradsOf(sum)[0] as number[])[1]).toBeCloseTo(-0.8, 5);
});

test.each([
  [0, 2],
  [-1, 0.9230769],
  [-Infinity, 2],
  [0.5, 26.4840368],
])('clipGradNorm takes an order of %d, as PyTorch does', (normType, want) => {
  const params = withGrads(normType === 0.5 ? [3, 4, 0] : [3, 4], [2]);
  expect(clipGradNorm(params, 1, { normType }).item()).toBeCloseTo(want, 5);
  expect((gradsOf(params)[1] as number[])[0]).toBeCloseTo(2 * Math.min(1, 1 / want), 5);
});

test.each(['float16', 'bfloat16'] as const)(
  'clipGradNorm clips gradients of %s, alone and beside others',
  (dtype) => {
    const halfOf = (...values: number[]): Tensor => {
      const param = parameter(ones([values.length], { dtype }));
      param.mul(tensor(values, { dtype })).sum().backward();
      return param;
    };
    const alone = [halfOf(3, 0), halfOf(4)];
    const norm = clipGradNorm(alone, 2.5);
    expect([norm.item(), norm.dtype]).toEqual([5, 'float32']);
    expect(gradsOf(alone)).toEqual([[1.5, 0], [2]]);
    for (const normType of [1, Infinity]) {
      const others = [halfOf(3, 4)];
      expect(clipGradNorm(others, 100, { normType }).item()).toBe(normType === 1 ? 7 : 4);
      expect(gradsOf(others)).toEqual([[3, 4]]);
    }
    const wide = parameter(ones([1], { dtype: 'float64' }));
    wide.mul(2).sum().backward();
    const mixed = [halfOf(2), wide, ...withGrads([2, 2])];
    expect(clipGradNorm(mixed, 2).item()).toBeCloseTo(4, 12);
    const [[half], [double], single] = gradsOf(mixed) as [number[], number[], number[]];
    expect(half).toBe(1);
    expect(double).toBeCloseTo(1, 6);
    expect(single[1]).toBeCloseTo(1, 6);
  },
);

test('clipGradNorm computes in float64 if a gradient is float64', () => {
  const wide = parameter(ones([2], { dtype: 'float64' }));
  wide
    .mul(tensor([3, 4], { dtype: 'float64' }))
    .sum()
    .backward();
  const params = [wide, ...withGrads([2])];
  const norm = clipGradNorm(params, 1);
  expect([norm.dtype, norm.item()]).toEqual(['float64', 5.385164807134504]);
  const [[a, b], [c]] = gradsOf(params) as [number[], number[]];
  expect(a).toBeCloseTo(0.557085911082899, 14);
  expect(b).toBeCloseTo(0.742781214777199, 14);
  expect(c).toBe(Math.fround(0.3713906));
});

test('clipGradNorm can refuse a norm that is not finite; without that option, NaN reaches every gradient', () => {
  const params = withGrads([NaN, 1]);
  expect(() => clipGradNorm(params, 1, { errorIfNonfinite: true })).toThrow(
    'the norm of the gradients is NaN',
  );
  expect(gradsOf(params)).toEqual([[NaN, 1]]);
  expect(clipGradNorm(params, 1).item()).toBeNaN();
  expect(gradsOf(params)).toEqual([[NaN, NaN]]);
  expect(codeOf(() => clipGradNorm(params, -1))).toBe('ERR_TENSOR_ARGUMENT');
  expect(codeOf(() => clipGradNorm(params, 1, { normType: NaN }))).toBe('ERR_TENSOR_ARGUMENT');
});

test('clipGradValue holds every element in a range', () => {
  const params = withGrads([3, -8, 0.5], [4]);
  clipGradValue(params, 2);
  expect(gradsOf(params)).toEqual([[2, -2, 0.5], [2]]);
  expect(codeOf(() => clipGradValue(params, -1))).toBe('ERR_TENSOR_ARGUMENT');
});
