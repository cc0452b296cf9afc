// Errors of functions that make, compare and rearrange arrays, and what the comparison with PyTorch cannot say.
import { describe, expect, test } from 'vitest';
import * as t from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';

const row = (): t.Tensor => t.tensor([1, 2, 3]);
const grid = (): t.Tensor => t.arange(6).reshape([2, 3]);

describe('elements that are not set', () => {
  test('have a place of their own, also in pinned memory that is asked for', () => {
    const a = t.empty([2, 2], { dtype: 'int64' });
    expect(a.fill_(3).toArray()).toEqual([
      [3, 3],
      [3, 3],
    ]);
    expect(t.emptyLike(a).shape).toEqual([2, 2]);
    expect(codeOf(() => t.empty([1], { dtype: 'long' as 'int64' }))).toBe('ERR_TENSOR_DTYPE');
  });
});

describe('random tensors like others', () => {
  test('are drawn from the generator, and have no 1 in 16 bits', () => {
    const options = (): t.RandomLikeOptions => ({ generator: t.generator(3) });
    expect(t.randLike(row(), options()).toArray()).toEqual(t.rand([3], options()).toArray());
    const half = t.randLike(t.zeros([4000], { dtype: 'bfloat16' }), options());
    expect(half.lt(1).all().item()).toBe(1);
    expect(half.mean().item()).toBeCloseTo(0.5, 1);
    const whole = t.randintLike(t.zeros([1000], { dtype: 'int32' }), -2, 2, options());
    expect([whole.min().item(), whole.max().item()]).toEqual([-2, 1]);
  });

  test('normal() has the given mean and deviation', () => {
    const drawn = t.normal(t.full([4000], 5), 0.5, { generator: t.generator(1) });
    expect(drawn.mean().item()).toBeCloseTo(5, 1);
    expect(drawn.std().item()).toBeCloseTo(0.5, 1);
    expect(t.normal(1, 0, { shape: [2] }).toArray()).toEqual([1, 1]);
    expect(() => t.normal(0, 1)).toThrow(
      'normal: shape: expected the shape of the result beside two numbers',
    );
    expect(() => t.normal(row(), 1, { shape: [3] })).toThrow('normal: shape: expected none beside a tensor');
    expect(() => t.normal(row(), row().neg())).toThrow('normal: std: expected numbers ≥ 0, got one below 0');
  });
});

test('windows share memory, and are not written one by one', () => {
  const a = t.arange(4);
  const windows = a.unfold(0, 2, 1);
  a.at(1).fill_(9);
  expect(windows.toArray()).toEqual([
    [0, 9],
    [9, 2],
    [2, 3],
  ]);
  expect(() => windows.add_(1)).toThrow('elements of the tensor [3, 2] share memory');
  expect(a.unfold(0, 2, 2).add_(1).toArray()).toEqual([
    [1, 10],
    [3, 4],
  ]);
});

test('searchsorted takes NaN as the largest, and an order from sort()', () => {
  const sorted = t.tensor([1, 2, NaN]);
  expect(t.searchsorted(sorted, t.tensor([2, 5, NaN])).toArray()).toEqual([1, 2, 3]);
  const { indices } = row().neg().sort();
  const places = t.searchsorted(row().neg(), t.tensor([-2.5]), { sorter: indices });
  expect(places.toArray()).toEqual([1]);
});

test('isin compares many elements beyond 2^53', () => {
  const many = t.tensor([...Array.from({ length: 40 }, (_, i) => BigInt(i)), 2n ** 60n + 1n]);
  expect(t.isin(t.tensor([2n ** 60n, 2n ** 60n + 1n, 7n]), many).toArray()).toEqual([0, 1, 1]);
});

test.each([
  ['median', [1, 2, 2, 1], [0.5, 0, 0, 0.5]],
  ['median', [1, NaN, NaN, 1], [0, 0.5, 0.5, 0]],
  ['median', [Infinity, 1, Infinity], [0.5, 0, 0.5]],
  ['nanmedian', [1, NaN, 3, 1], [0.5, 0, 0, 0.5]],
  ['nanmedian', [NaN, NaN], [0.5, 0.5]],
] as const)(
  '%s of all elements shares its gradient among equal ones, as in PyTorch: %j',
  (name, values, want) => {
    const x = t.tensor([...values], { requiresGrad: true });
    const out = x[name]();
    expect(out.item()).toBe(x.detach()[name]().item());
    expect(t.grad(out, x)[0]!.toArray()).toEqual(want);
  },
);

test('roll and autocast name an argument that is none', () => {
  expect(codeOf(() => t.roll(t.ones([2]), [1], 'x' as never))).toBe('ERR_TENSOR_ARGUMENT');
  expect(codeOf(() => t.autocast(undefined as never, () => 1))).toBe('ERR_TENSOR_ARGUMENT');
});

test('diff checks its dimension also without a difference', () => {
  expect(t.diff(t.ones([2]), 0).toArray()).toEqual([1, 1]);
  expect(t.diff(t.ones([2, 3]), 2 ** 40).shape).toEqual([2, 0]);
  expect(codeOf(() => t.diff(t.ones([2]), 0, 1))).toBe('ERR_TENSOR_SHAPE');
});

test('running extremes and medians take NaN as PyTorch does', () => {
  const { values, indices } = t.tensor([1, NaN, 2]).cummax(0);
  expect([values.toArray(), indices.toArray()]).toEqual([
    [1, NaN, NaN],
    [0, 1, 1],
  ]);
  expect(t.tensor([3, NaN, 1]).median().item()).toBeNaN();
  expect(t.tensor([3, NaN, 1]).nanmedian().item()).toBe(1);
  expect(() => row().to('bool').median()).toThrow('median: expected numbers, got bool');
  expect(() => t.zeros([2, 0]).median(1)).toThrow('median: nothing to choose from');
});

describe('a wrong call', () => {
  const wrong: readonly [string, () => unknown, string][] = [
    ['tile', () => grid().tile([-1]), 'tile: expected an array of sizes'],
    [
      'repeatInterleave',
      () => row().repeatInterleave(-1),
      'repeatInterleave: expected numbers of repeats ≥ 0',
    ],
    ['repeatInterleave, dtype', () => row().repeatInterleave(row()), 'expected indices of int32 or int64'],
    ['movedim', () => grid().movedim([0, 1], [0]), 'movedim: expected as many destinations as sources'],
    ['unfold', () => row().unfold(0, 4, 1), 'unfold: size: expected an integer from 0 to 3'],
    ['unfold, step', () => row().unfold(0, 2, 0), 'unfold: step: expected an integer ≥ 1, got 0'],
    ['rot90', () => grid().rot90(1, [0]), 'rot90: dims: expected two dimensions'],
    ['fliplr', () => row().fliplr(), 'fliplr: expected at least 2 dimensions'],
    ['hsplit', () => grid().hsplit(2), 'hsplit: dimension 1 has size 3, which is no multiple of 2'],
    ['vsplit', () => row().vsplit(1), 'vsplit: expected at least 2 dimensions'],
    ['tensorSplit', () => row().tensorSplit('2' as never), 'tensorSplit: sections: expected an integer ≥ 1'],
    ['hstack', () => t.hstack([]), 'hstack: tensors: expected at least one, got none'],
    ['vstack', () => t.vstack(row() as never), 'vstack: expected an array of tensors, got a tensor'],
    ['broadcastTensors', () => t.broadcastTensors(row(), 1 as never), 'expected an array of tensors'],
    ['combinations', () => t.combinations(grid()), 'combinations: expected 1 dimensions'],
    ['cartesianProd', () => t.cartesianProd(grid()), 'cartesianProd: expected 1 dimensions'],
    ['meshgrid', () => t.meshgrid([grid()]), 'meshgrid: expected 0 or 1 dimensions'],
    ['isin', () => t.isin(1, 2), 'isin: elements: expected a tensor beside a number, got 1'],
    ['allclose', () => t.allclose(row(), row().to('float64')), 'allclose: expected one dtype'],
    [
      'allclose, bound',
      () => t.allclose(row(), row(), { atol: -1 }),
      'allclose: atol: expected a number ≥ 0',
    ],
    [
      'randintLike',
      () => t.randintLike(row().to('uint8'), 0, 300),
      'randintLike: 299 does not fit into uint8',
    ],
    ['randLike', () => t.randLike(row().to('int32')), 'randLike: expected a floating dtype'],
    ['searchsorted', () => t.searchsorted(grid(), 1), 'expected 1 dimensions, got shape [2, 3]'],
    [
      'searchsorted, sorter',
      () => t.searchsorted(row(), 1, { sorter: t.tensor([0n]) }),
      'a sorter of shape [3]',
    ],
    ['bucketize', () => t.bucketize(1, grid()), 'bucketize: boundaries: expected 1 dimensions'],
    ['viewAs', () => row().viewAs([3] as never), 'viewAs: expected the other to be a tensor'],
  ];
  test.each(wrong)('%s', (_, call, message) => {
    expect(call).toThrow(message);
    expect(codeOf(call)).toMatch(/^ERR_TENSOR_/);
  });
});
