// Tests reductions.
import { describe, expect, test } from 'vitest';
import {
  all,
  any,
  arange,
  argmax,
  cumsum,
  full,
  generator,
  gradCheck,
  logSumExp,
  max,
  mean,
  min,
  norm,
  prod,
  randn,
  sort,
  std,
  sum,
  type Tensor,
  tensor,
  topk,
  variance,
  zeros,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, gradientsOf, leaf64 } from '../../support/leaf64.ts';

const cube = (): Tensor => arange(24).reshape([2, 3, 4]);

describe('sum, mean and max', () => {
  test('over all dimensions', () => {
    expect(sum(cube()).item()).toBe(276);
    expect(mean(cube()).item()).toBe(11.5);
    expect(max(cube()).item()).toBe(23);
    expect(sum(cube(), undefined, true).shape).toEqual([1, 1, 1]);
  });

  test('over one or several dimensions, kept or not', () => {
    expect(sum(cube(), 2).toArray()).toEqual([
      [6, 22, 38],
      [54, 70, 86],
    ]);
    expect(sum(cube(), [0, 2]).toArray()).toEqual([60, 92, 124]);
    expect(sum(cube(), [0, 1]).toArray()).toEqual([60, 66, 72, 78]);
    expect(mean(cube(), -1, true).toArray()).toEqual([
      [[1.5], [5.5], [9.5]],
      [[13.5], [17.5], [21.5]],
    ]);
    expect(max(cube(), [1]).toArray()).toEqual([
      [8, 9, 10, 11],
      [20, 21, 22, 23],
    ]);
    expect(sum(cube(), []).item()).toBe(276);
    expect(cube().any([]).shape).toEqual([2, 3, 4]);
    expect(sum(tensor(5)).item()).toBe(5);
  });

  test('keep integers, except that a mean of them is refused', () => {
    const a = tensor([
      [1n, 2n],
      [3n, 40n],
    ]);
    expect(sum(a, 0)).toMatchObject({ dtype: 'int64' });
    expect(sum(a, 0).toArray()).toEqual([4, 42]);
    expect(max(a).item()).toBe(40);
    expect(codeOf(() => mean(a))).toBe('ERR_TENSOR_DTYPE');
  });

  test('of nothing: sum is 0, mean is NaN, max is refused', () => {
    const nothing = zeros([0, 3]);
    expect(sum(nothing).item()).toBe(0);
    expect(sum(nothing, 0).toArray()).toEqual([0, 0, 0]);
    expect(mean(nothing).item()).toBeNaN();
    expect(codeOf(() => max(nothing))).toBe('ERR_TENSOR_SHAPE');
    expect(max(nothing, 1).shape).toEqual([0]);
  });

  test('refuse a dimension that is not there', () => {
    expect(() => sum(cube(), 3)).toThrow('sum: expected a dimension from -3 to 2, got 3.');
  });

  test.each([[undefined], [0], [1], [-1], [[0, 2]], [[0, 1, 2]]])('gradients over dimensions %j', (dims) => {
    for (const op of [sum, mean, max]) {
      for (const keepDim of [false, true]) {
        const x = randn([2, 3, 2], { generator: generator(5), requiresGrad: true });
        gradCheck((a) => op(a!, dims, keepDim).square(), [x]);
      }
    }
  });

  test('equal maxima share the gradient', () => {
    const x = tensor(
      [
        [3, 1, 3],
        [2, 0, 1],
      ],
      { requiresGrad: true },
    );
    max(x, 1).sum().backward();
    expect(x.grad!.toArray()).toEqual([
      [0.5, 0, 0.5],
      [1, 0, 0],
    ]);
  });
});

describe('argmax', () => {
  test('gives the index along a dimension, or in the flattened tensor', () => {
    const a = tensor([
      [1, 9, 3],
      [7, 2, 7],
    ]);
    expect(argmax(a)).toMatchObject({ dtype: 'int64', shape: [] });
    expect(argmax(a).item()).toBe(1);
    expect(argmax(a, 1).toArray()).toEqual([1, 0]);
    expect(argmax(a, 0).toArray()).toEqual([1, 0, 1]);
    expect(argmax(a, -1, true).shape).toEqual([2, 1]);
    expect(codeOf(() => argmax(zeros([2, 0]), 1))).toBe('ERR_TENSOR_SHAPE');
  });

  test('gives an accuracy with labels of another integer type', () => {
    const labels = tensor([1n, 2n]);
    expect(
      argmax(
        tensor([
          [1, 9, 3],
          [7, 2, 7],
        ]),
        1,
      )
        .eq(labels)
        .sum()
        .item(),
    ).toBe(1);
  });
});

describe('further reductions', () => {
  const x = tensor([
    [2, 0, 3],
    [4, 5, 0],
  ]);

  test('min, prod, any, all, argmin, variance, std and logSumExp', () => {
    expect(x.min(1).toArray()).toEqual([0, 0]);
    expect(x.prod(0).toArray()).toEqual([8, 0, 0]);
    expect(x.any(0)).toMatchObject({ dtype: 'bool' });
    expect(x.sub(2).all(1).toArray()).toEqual([0, 1]);
    expect(x.narrow(0, 0, 0).any().item()).toBe(0);
    expect(x.narrow(0, 0, 0).all().item()).toBe(1);
    expect(x.argmin(1).toArray()).toEqual([1, 2]);
    expect(x.variance(0).toArray()).toEqual([2, 12.5, 4.5]);
    expect(x.variance(0, { correction: 0, keepDim: true }).toArray()).toEqual([[1, 6.25, 2.25]]);
    expect(x.std(0).at(0).item()).toBeCloseTo(Math.SQRT2, 6);
    expect(x.std(0, { correction: 2 }).at(1).item()).toBe(Infinity);
    expect(x.add(1000).logSumExp(1).at(0).item()).toBeCloseTo(
      1000 + Math.log(Math.exp(2) + 1 + Math.exp(3)),
      3,
    );
    expect(
      tensor([
        [-Infinity, -Infinity],
        [0, -Infinity],
      ])
        .logSumExp(1)
        .toArray(),
    ).toEqual([-Infinity, 0]);
    expect(x.logSumExp([0, 1], true).shape).toEqual([1, 1]);
  });

  test('logSumExp of nothing is −∞, and integers are taken', () => {
    const nothing = zeros([2, 0], { requiresGrad: true });
    const out = nothing.logSumExp(1);
    expect(out.toArray()).toEqual([-Infinity, -Infinity]);
    out.sum().backward();
    expect(nothing.grad!.shape).toEqual([2, 0]);
    expect(nothing.logSumExp([0, 1], true).toArray()).toEqual([[-Infinity]]);
    expect(nothing.logSumExp(0).shape).toEqual([0]);
    const whole = tensor([0n, 1n, 2n]).logSumExp(0);
    expect([whole.dtype, whole.item()]).toEqual(['float32', expect.closeTo(2.4076059, 6)]);
  });

  test('sums of integers and bool are int64; means need floats', () => {
    const small = tensor([200, 100], { dtype: 'uint8' });
    expect([small.sum().dtype, small.sum().item()]).toEqual(['int64', 300]);
    expect(x.eq(0).sum().item()).toBe(2);
    expect(codeOf(() => small.mean())).toBe('ERR_TENSOR_DTYPE');
  });

  test('reduce strided tensors over any dimensions, with the right gradient', () => {
    for (const op of [
      (y: Tensor) => y.sum([0, 2]),
      (y: Tensor) => y.mean([-1], true),
      (y: Tensor) => y.max([0, 1]),
      (y: Tensor) => y.min(1, true),
      (y: Tensor) => y.prod([1, 2]),
      (y: Tensor) => y.variance([0, 1]),
      (y: Tensor) => y.std(2, { correction: 0 }),
      (y: Tensor) => y.logSumExp([0, 2]),
    ]) {
      gradCheck64((y) => op(y!.permute([2, 0, 1])).square(), [leaf64([2, 3, 4])]);
      gradCheck64((y) => op(y!.at(':', [0, null, 2])).square(), [leaf64([2, 3, 4])]);
    }
  });

  test('the gradient of a product is right beside zeros', () => {
    const y = tensor(
      [
        [2, 3, 4],
        [0, 3, 4],
        [0, 3, 0],
      ],
      { requiresGrad: true },
    );
    y.prod(1).sum().backward();
    expect(y.grad!.toArray()).toEqual([
      [12, 8, 6],
      [12, 0, 0],
      [0, 0, 0],
    ]);
  });

  test('halves accumulate in float32', () => {
    for (const dtype of ['float16', 'bfloat16'] as const) {
      expect(full([4096], 0.5, { dtype }).sum().item()).toBe(2048);
      expect(full([300, 300], 4, { dtype }).mean().item()).toBe(4);
    }
  });
});

describe('dimensions that are named wrongly', () => {
  type Reduction = [name: string, reduce: (x: Tensor, dims: never, keepDim?: never) => Tensor];
  const reductions: readonly Reduction[] = [
    ...Object.entries({ sum, mean, max, min, prod, any, all, logSumExp }),
    ...Object.entries({ variance, std, norm }).map(
      ([name, op]): Reduction => [
        name,
        (x, dims, keepDim) => op(x, dims, keepDim === undefined ? {} : { keepDim }),
      ],
    ),
  ];

  test.each(reductions)('%s refuses repeated ones and other values', (name, reduce) => {
    for (const dims of [
      [0, 0],
      [0, -3],
      [1, 2, 1],
    ] as never[])
      expect(() => reduce(cube(), dims)).toThrow(/: dimension -?\d is named more than once/);
    expect(codeOf(() => reduce(tensor(1), [0, -1] as never))).toBe('ERR_TENSOR_SHAPE');
    expect(reduce(tensor(1), 0 as never).shape).toEqual([]);
    for (const dims of [{ dim: 1 }, 'dim', '1', true, null, 1n, tensor([1])] as never[])
      expect(() => reduce(cube(), dims)).toThrow(
        /: expected a dimension or an array of dimensions, which are integers, got /,
      );
    for (const dims of [1.5, NaN, ['1'], [0.5], [true], [[0]]] as never[])
      expect(() => reduce(cube(), dims)).toThrow(/: expected a dimension to be an integer, got /);
    expect(() => reduce(cube(), { dim: 1 } as never)).toThrow(`Pass dimensions by position: ${name}(x, 1).`);
  });

  test.each(reductions)('%s refuses a keepDim that is no boolean', (name, reduce) => {
    // Some reductions take it as an option, others as an argument.
    const isOption = ['variance', 'std', 'norm'].includes(name);
    const sentence = isOption ? 'keepDim: expected true or false' : 'expected keepDim to be true or false';
    for (const keepDim of [{ keepDim: false }, 'false', 1] as never[])
      expect(() => reduce(cube(), 0 as never, keepDim)).toThrow(`${name}: ${sentence}, got `);
  });

  test('argmax, cumsum and sort refuse them as well', () => {
    for (const dim of ['0', true, null, [0], 0.5] as never[])
      for (const op of [argmax, cumsum, sort] as const)
        expect(codeOf(() => op(cube(), dim))).toBe('ERR_TENSOR_ARGUMENT');
    expect(() => argmax(cube(), 0, {} as never)).toThrow('argmax: expected keepDim to be true or false');
    expect(() => argmax(tensor([true]))).toThrow("argmax: expected numbers, got bool. Use .to('uint8').");
    expect(() => topk(tensor([true]), 1)).toThrow('topk: expected numbers, got bool');
  });
});

describe('gradients at the edge, as in PyTorch', () => {
  test('std of equal elements is 0, and infinities stay in variance', () => {
    expect(gradientsOf((x) => std(x), [3, 3, 3])).toEqual([[0, 0, 0]]);
    expect(gradientsOf((x) => std(x, 0, { correction: 0 }), [3])).toEqual([[0]]);
    expect(gradientsOf((x) => std(x), [NaN, 1, 2])).toEqual([[NaN, NaN, NaN]]);
    expect(gradientsOf((x) => variance(x), [3, 3, 3])).toEqual([[0, 0, 0]]);
    expect(gradientsOf((x) => variance(x), [Infinity, 1, 2])).toEqual([[NaN, -Infinity, -Infinity]]);
    expect(gradientsOf((x) => variance(x), [3])).toEqual([[NaN]]);
    expect(gradientsOf((x) => variance(x, undefined, { correction: 2 }), [1, 3])).toEqual([
      [Infinity, Infinity],
    ]);
  });

  test('variance of float16 is taken in float32', () => {
    const x = tensor([1000, 1001, 1000], { dtype: 'float16' });
    expect(variance(x).item()).toBeCloseTo(0.3333, 3);
    expect(std(tensor([200, -200], { dtype: 'float16' })).item()).toBe(282.75);
  });

  test('gradient of maxima that are NaN: theirs alone without dimensions, NaN for all along a dimension', () => {
    expect(gradientsOf((x) => max(x), [1, NaN, NaN])).toEqual([[0, 0.5, 0.5]]);
    expect(gradientsOf((x) => min(x), [NaN, 1])).toEqual([[1, 0]]);
    expect(gradientsOf((x) => max(x, 0), [1, NaN, NaN])).toEqual([[NaN, NaN, NaN]]);
    expect(gradientsOf((x) => max(x, 0), [3, 1, 3])).toEqual([[0.5, 0, 0.5]]);
  });

  test('a product keeps NaN beside a 0', () => {
    expect(gradientsOf((x) => prod(x), [2, 0, 3])).toEqual([[0, 6, 0]]);
    const [[first, second]] = gradientsOf((x) => prod(x, 0), [0, 0, NaN]) as [number[]];
    expect([first, second]).toEqual([NaN, NaN]);
  });

  test('the gradient of a product is 0 beside a 0, also if the other elements overflow', () => {
    expect(gradientsOf((x) => prod(x), [0, 1e200, 1e200])).toEqual([[Infinity, 0, 0]]);
    const halves = tensor([0, 200, 200, 200], { dtype: 'float16', requiresGrad: true });
    halves.prod().backward();
    expect(halves.grad!.toArray()).toEqual([Infinity, 0, 0, 0]);
  });
});
