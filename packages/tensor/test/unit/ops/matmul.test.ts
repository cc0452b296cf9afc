// Tests matmul and linear.
import { describe, expect, test } from 'vitest';
import {
  arange,
  generator,
  gradCheck,
  linear,
  matmul,
  randint,
  randn,
  type Tensor,
  tensor,
  zeros,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';

const from = generator(11);
const leaf = (...shape: number[]): Tensor => randn(shape, { generator: from, requiresGrad: true });

describe('matmul of integers', () => {
  test('wraps around in the dtype of the factors, as PyTorch', () => {
    const ints = tensor(
      [
        [2 ** 30, 3],
        [-7, 2 ** 31 - 1],
      ],
      { dtype: 'int32' },
    );
    const right = tensor(
      [
        [4, 1],
        [5, -2],
      ],
      { dtype: 'int32' },
    );
    const product = matmul(ints, right);
    expect([product.dtype, product.toArray()]).toEqual([
      'int32',
      [
        [15, 1073741818],
        [2147483615, -5],
      ],
    ]);
    const bytes = tensor([[200, 100, 7]], { dtype: 'uint8' });
    const column = tensor([[3], [4], [5]], { dtype: 'uint8' });
    expect(matmul(bytes, column).toArray()).toEqual([[11]]);
    expect(matmul(tensor([2n ** 62n, 3n]), tensor([4n, 5n])).item()).toBe(15);
    expect(matmul(tensor([[2n ** 40n, 1n]]), tensor([[2n ** 20n], [7n]])).dataSync()[0]).toBe(2n ** 60n + 7n);
  });

  test('takes batches, vectors, views and sizes of 0', () => {
    const a = arange(12).reshape([2, 2, 3]).to('int64');
    const b = arange(6).reshape([3, 2]).to('int64');
    expect(matmul(a, b).toArray()).toEqual([
      [
        [10, 13],
        [28, 40],
      ],
      [
        [46, 67],
        [64, 94],
      ],
    ]);
    expect(matmul(a, b.at(':', 0)).toArray()).toEqual([
      [10, 28],
      [46, 64],
    ]);
    expect(matmul(b.t(), a.transpose(1, 2)).shape).toEqual([2, 2, 2]);
    expect(matmul(b.t(), a.transpose(1, 2)).at(1).toArray()).toEqual([
      [46, 64],
      [67, 94],
    ]);
    expect(
      matmul(a.narrow(2, 0, 0), b.narrow(0, 0, 0))
        .sum()
        .item(),
    ).toBe(0);
    expect(linear(a.at(0), arange(12).reshape([4, 3]).to('int64'), arange(4).to('int64')).toArray()).toEqual([
      [5, 15, 25, 35],
      [14, 51, 88, 125],
    ]);
  });

  test.each([
    [70, 90, 60],
    [3, 9000, 2],
    [1, 30000, 5],
  ])('[%i, %i] by [.., %i] is that of float64 where float64 is exact', (m, k, n) => {
    for (const dtype of ['int32', 'int64', 'uint8'] as const) {
      const low = dtype === 'uint8' ? 0 : -999;
      const a = randint(low, 250, [k, m], { generator: from }).t();
      const b = randint(low, 250, [k, n], { generator: from });
      const want = matmul(a.to('float64'), b.to('float64')).to('int64').to(dtype);
      expect(matmul(a.to(dtype), b.to(dtype)).toArray()).toEqual(want.toArray());
    }
  });

  test('refuses bool and two dtypes', () => {
    const [a, b] = [zeros([2, 2], { dtype: 'int32' }), zeros([2, 2], { dtype: 'int64' })];
    expect(codeOf(() => matmul(a, b))).toBe('ERR_TENSOR_DTYPE');
    expect(() => matmul(a.to('bool'), a.to('bool'))).toThrow('matmul: expected numbers, got bool');
    expect(codeOf(() => linear(a, a, null, { activation: 'gelu' }))).toBe('ERR_TENSOR_DTYPE');
  });
});

describe('matmul', () => {
  test('multiplies matrices and vectors in every combination', () => {
    const a = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    const b = tensor([
      [1, 0],
      [0, 1],
      [2, 2],
    ]);
    expect(matmul(a, b).toArray()).toEqual([
      [7, 8],
      [16, 17],
    ]);
    expect(matmul(a, tensor([1, 1, 1])).toArray()).toEqual([6, 15]);
    expect(matmul(tensor([1, 1]), a).toArray()).toEqual([5, 7, 9]);
    expect(matmul(tensor([1, 2]), tensor([3, 4])).item()).toBe(11);
    expect(matmul(zeros([2, 4, 0]), zeros([0, 3])).shape).toEqual([2, 4, 3]);
    expect(matmul(zeros([2, 0]), zeros([0, 3])).toArray()).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
  });

  test.each([
    [
      [2, 3],
      [3, 4],
    ],
    [[2, 3], [3]],
    [[3], [3, 2]],
    [[3], [3]],
    [
      [1, 1],
      [1, 1],
    ],
  ])('gradients of %j × %j', (a, b) => {
    gradCheck((x, y) => matmul(x!, y!), [leaf(...a), leaf(...b)]);
  });

  test('gradients of a matrix times itself, and of one used twice', () => {
    gradCheck((x) => matmul(x!, x!), [leaf(3, 3)]);
    gradCheck((x, y) => matmul(matmul(x!, y!), y!), [leaf(2, 3), leaf(3, 3)]);
  });

  test('refuses shapes that do not fit', () => {
    expect(() => matmul(zeros([2, 3]), zeros([2, 3]))).toThrow('matmul: cannot multiply [2, 3] by [2, 3]');
    expect(codeOf(() => matmul(zeros([2, 2, 3]), zeros([3, 3, 1])))).toBe('ERR_TENSOR_SHAPE');
  });
});

describe('linear', () => {
  test('equals x · wᵀ + b for any leading dimensions', () => {
    const [w, b] = [leaf(4, 3), leaf(4)];
    for (const shape of [[3], [2, 3], [2, 5, 3], [0, 3]]) {
      const x = leaf(...shape);
      const flat = matmul(x.reshape([-1, 3]), w.t()).add(b);
      const got = linear(x, w, b);
      expect(got.shape).toEqual([...shape.slice(0, -1), 4]);
      const want = flat.dataSync();
      for (const [i, value] of got.dataSync().entries()) expect(value).toBeCloseTo(Number(want[i]), 5);
    }
  });

  test.each([[[3]], [[2, 3]], [[2, 2, 3]]])('gradients for x %j', (shape) => {
    gradCheck((x, w, b) => linear(x!, w!, b!), [leaf(...shape), leaf(4, 3), leaf(4)]);
    gradCheck((x, w) => linear(x!, w!, null), [leaf(...shape), leaf(4, 3)]);
  });

  describe.each(['relu', 'gelu', 'geluTanh'] as const)('with %s', (activation) => {
    const apart = (x: Tensor): Tensor =>
      activation === 'relu' ? x.relu() : x.gelu({ approximate: activation === 'gelu' ? 'none' : 'tanh' });

    test('equals the activation of its result, and so do the gradients', () => {
      const [x, w, b] = [leaf(2, 5, 3), leaf(4, 3), leaf(4)];
      const fused = linear(x, w, b, { activation });
      const values = fused.toArray();
      fused.square().sum().backward();
      const grads = [x, w, b].map((each) => Array.from(each.grad!.dataSync(), Number));
      for (const each of [x, w, b]) each.zeroGrad();
      const out = apart(linear(x, w, b));
      expect(values).toEqual(out.toArray());
      out.square().sum().backward();
      for (const [i, each] of [x, w, b].entries())
        for (const [j, value] of each.grad!.dataSync().entries())
          expect(grads[i]![j]).toBeCloseTo(Number(value), 4);
    });

    test('gradients by finite differences, in float64 too', () => {
      gradCheck64(
        (x, w, b) => linear(x!, w!, b!, { activation }),
        [leaf64([3, 3]), leaf64([4, 3]), leaf64([4])],
      );
      gradCheck64((x, w) => linear(x!, w!, null, { activation }), [leaf64([2, 3]), leaf64([4, 3])]);
    });

    test('float16 computes in float32, and a bias may be strided', () => {
      const x = leaf(2, 3);
      const [w, wide] = [leaf(4, 3), leaf(4, 2)];
      const b = wide.detach().select(1, 1);
      const want = apart(x.matmul(w.t()).add(b));
      const got = linear(x, w, b, { activation });
      for (const [i, value] of got.dataSync().entries())
        expect(value).toBeCloseTo(Number(want.dataSync()[i]), 5);
      const half = linear(x.to('float16'), w.to('float16'), b.to('float16'), { activation });
      expect(half.dtype).toBe('float16');
      for (const [i, value] of half.to('float32').dataSync().entries())
        expect(value).toBeCloseTo(Number(want.dataSync()[i]), 1);
    });
  });

  test('refuses an activation that it does not know', () => {
    const run = (): Tensor => linear(zeros([2, 3]), zeros([4, 3]), null, { activation: 'softmax' as 'relu' });
    expect(run).toThrow('linear: activation');
    expect(codeOf(run)).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('names all shapes when they do not fit', () => {
    expect(() => linear(zeros([2, 3]), zeros([4, 5]), zeros([4]))).toThrow('x [2, 3], w [4, 5], b [4]');
    expect(codeOf(() => linear(zeros([2, 3]), zeros([4, 3]), zeros([3])))).toBe('ERR_TENSOR_SHAPE');
  });
});

describe('batched matmul', () => {
  /** Multiplies nested arrays by plain loops. */
  const product = (a: number[][], b: number[][]): number[][] =>
    a.map((row) => b[0]!.map((_, j) => row.reduce((sum, x, p) => sum + x * b[p]![j]!, 0)));

  test('broadcasts the dimensions in front, and takes transposes and parts as they lie', () => {
    const a = arange(48).reshape([2, 4, 6]).sub(20);
    const b = arange(90).reshape([5, 3, 6]).sub(40);
    const views: [Tensor, Tensor][] = [
      [a.at(':', ':', [0, 3]).unsqueeze(1), b.at(':', ':', [3])],
      [a.at(':', [1]).unsqueeze(1), b.transpose(1, 2)],
      // No dimension of the second operand is dense, so matmul copies it.
      [a.transpose(1, 2).unsqueeze(1).at(':', ':', [2, 5]), arange(60).reshape([3, 4, 5]).permute([2, 1, 0])],
    ];
    for (const [x, y] of views) {
      const got = matmul(x, y);
      const [outer, inner] = got.shape as [number, number];
      for (let i = 0; i < outer; i++) {
        for (let j = 0; j < inner; j++) {
          const left = x.at(i, 0).toArray() as number[][];
          expect(got.at(i, j).toArray()).toEqual(product(left, y.at(j).toArray() as number[][]));
        }
      }
    }
  });

  test('passes gradients on, summed over what was broadcast', () => {
    const weights = leaf64([4, 2], 5);
    gradCheck64((x, y) => matmul(x!, y!).square(), [leaf64([2, 3, 4]), weights]);
    gradCheck64((x, y) => matmul(x!, y!).square(), [leaf64([2, 1, 3, 4]), leaf64([5, 4, 2], 2)]);
    gradCheck64(
      (x, y) => matmul(x!.transpose(0, 2), y!.t()).square(),
      [leaf64([4, 3, 2]), leaf64([2, 4], 2)],
    );
    gradCheck64((x, y) => matmul(x!, y!).square(), [leaf64([4]), leaf64([3, 4, 2], 2)]);
    gradCheck64((x, y) => matmul(x!, y!).square(), [leaf64([3, 2, 4]), leaf64([4], 2)]);
    gradCheck64((x, y) => matmul(x!.expand([3, 2, 4]), y!).square(), [leaf64([2, 4]), leaf64([4, 3], 2)]);
    gradCheck64(
      (x, w, b) => linear(x!.transpose(0, 1), w!.t(), b!).square(),
      [leaf64([4, 3]), leaf64([4, 2], 2), leaf64([2], 3)],
    );
  });

  test('empty matrices and sums over nothing', () => {
    expect(matmul(zeros([2, 0]), zeros([0, 3])).toArray()).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
    expect(matmul(zeros([0, 2, 3]), zeros([3, 4])).shape).toEqual([0, 2, 4]);
  });

  test('halves multiply in float32 and keep their dtype and gradients', () => {
    for (const dtype of ['float16', 'bfloat16'] as const) {
      const x = tensor(
        [
          [1, 2],
          [3, 4],
        ],
        { dtype, requiresGrad: true },
      );
      const y = matmul(x, x);
      expect([y.dtype, y.toArray()]).toEqual([
        dtype,
        [
          [7, 10],
          [15, 22],
        ],
      ]);
      linear(y, x).sum().backward();
      expect(x.grad!.dtype).toBe(dtype);
    }
    expect(codeOf(() => matmul(zeros([1, 1]), zeros([1, 1], { dtype: 'float64' })))).toBe('ERR_TENSOR_DTYPE');
  });
});
