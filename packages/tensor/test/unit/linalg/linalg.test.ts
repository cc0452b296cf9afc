// Tests the namespace linalg: what does not depend on PyTorch's numbers, which the generator compares.
import { describe, expect, test } from 'vitest';
import {
  arange,
  eye,
  gradCheck,
  linalg,
  manualSeed,
  memory,
  ones,
  randn,
  scope,
  type Tensor,
  tensor,
  zeros,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';

const random = (...shape: number[]): Tensor => randn(shape).to('float64');
const transposed = (a: Tensor): Tensor => a.transpose(-2, -1);

/** Returns the largest difference between two tensors. */
const gap = (a: Tensor, b: Tensor): number => a.sub(b).abs().max().item();

describe('decompositions give the matrix back', () => {
  test.each([
    [5, 5],
    [20, 7],
    [7, 20],
    [40, 40],
  ])('%d × %d', (m, n) => {
    manualSeed(m + n);
    const a = random(2, m, n);
    for (const fullMatrices of [true, false]) {
      const { U, S, Vh } = linalg.svd(a, { fullMatrices });
      const k = Math.min(m, n);
      const product = U.narrow(-1, 0, k)
        .mul(S.unsqueeze(-2))
        .matmul(Vh.narrow(-2, 0, k));
      expect(gap(product, a)).toBeLessThan(1e-12);
      for (const q of [U, transposed(Vh)])
        expect(
          gap(transposed(q).matmul(q), eye(q.shape.at(-1)!, q.shape.at(-1)!, { dtype: 'float64' })),
        ).toBeLessThan(1e-12);
    }
    for (const mode of ['reduced', 'complete'] as const) {
      const { Q, R } = linalg.qr(a, { mode });
      expect(gap(Q.matmul(R), a)).toBeLessThan(1e-12);
      expect(gap(R.triu(), R)).toBe(0);
    }
    const symmetric = a.matmul(transposed(a));
    const { eigenvalues, eigenvectors } = linalg.eigh(symmetric);
    const back = eigenvectors.mul(eigenvalues.unsqueeze(-2)).matmul(transposed(eigenvectors));
    expect(gap(back, symmetric)).toBeLessThan(1e-10);
  });

  test('also a matrix of low rank, and a very small and a very large one', () => {
    const low = random(6, 2).matmul(random(2, 4));
    for (const a of [
      low,
      zeros([3, 2], { dtype: 'float64' }),
      random(3, 3).mul(1e-200),
      random(3, 3).mul(1e200),
    ]) {
      const { U, S, Vh } = linalg.svd(a, { fullMatrices: false });
      const scale = Math.max(S.max().item(), Number.MIN_VALUE);
      expect(gap(U.mul(S.unsqueeze(-2)).matmul(Vh), a)).toBeLessThanOrEqual(1e-13 * scale);
      const k = S.count;
      expect(gap(transposed(U).matmul(U), eye(k, k, { dtype: 'float64' }))).toBeLessThan(1e-13);
    }
    expect(linalg.matrixRank(low).item()).toBe(2);
  });

  test('vectors have the sign that the documentation says', () => {
    const { eigenvectors } = linalg.eigh(
      tensor([
        [2, -1],
        [-1, 2],
      ]),
    );
    expect(eigenvectors.at(0).toArray()).toEqual([
      expect.closeTo(Math.SQRT1_2, 6),
      expect.closeTo(Math.SQRT1_2, 6),
    ]);
  });
});

describe('gradients are those of finite differences', () => {
  const weights = (a: Tensor): Tensor => a.mul(tensor([1, -2, 3], { dtype: 'float64' }));
  test.each<[string, (a: Tensor) => Tensor]>([
    ['cholesky', (a) => linalg.cholesky(a.matmul(transposed(a)).add(eye(3, 3, { dtype: 'float64' })))],
    ['inv', linalg.inv],
    ['det', linalg.det],
    ['slogdet', (a) => linalg.slogdet(a).logAbsDet],
    ['R of qr', (a) => linalg.qr(a).R],
    ['eigenvectors', (a) => linalg.eigh(a.add(transposed(a))).eigenvectors],
    ['U of svd', (a) => linalg.svd(a).U],
    ['pinv', linalg.pinv],
    ['matrixExp', linalg.matrixExp],
    ['matrixPower', (a) => linalg.matrixPower(a, -2)],
    ['cond', linalg.cond],
  ])('%s', (_, f) => {
    manualSeed(3);
    const a = random(3, 3).add(eye(3, 3, { dtype: 'float64' }).mul(3));
    a.requiresGrad = true;
    expect(() =>
      gradCheck((x: Tensor) => weights(f(x).reshape([-1]).narrow(0, 0, 1).expand([3])), [a]),
    ).not.toThrow();
  });

  test('of a determinant that is 0, too', () => {
    const a = tensor(
      [
        [1, 2],
        [2, 4],
      ],
      { requiresGrad: true },
    );
    linalg.det(a).backward();
    const grad = a.grad!.toArray() as number[][];
    for (const [i, row] of [
      [4, -2],
      [-2, 1],
    ].entries())
      for (const [j, want] of row.entries()) expect(grad[i]![j]).toBeCloseTo(want, 5);
  });
});

describe('errors', () => {
  const batch = tensor([
    [
      [1, 0],
      [0, 1],
    ],
    [
      [1, 2],
      [2, 4],
    ],
  ]);

  test('name the matrix that is singular, or not positive definite', () => {
    for (const call of [() => linalg.inv(batch), () => linalg.solve(batch, ones([2, 2, 1]))]) {
      expect(codeOf(call)).toBe('ERR_TENSOR_LINALG');
      expect(call).toThrow('matrix 1 of the batch is singular: pivot 2 is 0');
    }
    expect(() => linalg.inv(zeros([1, 1]))).toThrow('the matrix is singular: pivot 1 is 0');
    expect(() => linalg.cholesky(batch.sub(1))).toThrow(
      'the leading minor of order 1 of matrix 0 of the batch is not positive',
    );
    expect(codeOf(() => linalg.cholesky(batch.sub(1)))).toBe('ERR_TENSOR_LINALG');
    expect(linalg.cond(batch, 1).toArray()).toEqual([1, Infinity]);
  });

  test('say which numbers, dtypes and shapes fit', () => {
    const bad = tensor([
      [1, NaN],
      [0, 1],
    ]);
    for (const call of [linalg.svd, linalg.eigh, linalg.pinv, linalg.matrixRank] as ((
      a: Tensor,
    ) => unknown)[])
      expect(() => call(bad)).toThrow('expected finite numbers, but the matrix has NaN or infinite ones');
    expect(codeOf(() => linalg.inv(ones([2, 2], { dtype: 'int64' })))).toBe('ERR_TENSOR_DTYPE');
    expect(() => linalg.inv(ones([2, 2]).to('float16'))).toThrow(
      "expected float32 or float64, got float16. Use to('float32')",
    );
    expect(() => linalg.solve(ones([2, 2]), ones([2], { dtype: 'float64' }))).toThrow(
      'expected tensors of one dtype',
    );
    expect(() => linalg.det(ones([2, 3]))).toThrow('expected square matrices [..., n, n], got shape [2, 3]');
    expect(() => linalg.qr(ones([3]))).toThrow('expected matrices [..., m, n], got shape [3]');
    expect(() => linalg.solve(eye(2), ones([3, 1]))).toThrow('got shapes [2, 2] and [3, 1]');
    expect(codeOf(() => linalg.solveTriangular(eye(2), ones([2, 1]), {} as never))).toBe(
      'ERR_TENSOR_ARGUMENT',
    );
    expect(codeOf(() => linalg.matrixNorm(eye(2), [0, 0]))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => linalg.matrixNorm(eye(2), [-2, -1], { ord: 3 }))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => linalg.norm(ones([2, 2, 2]), null, { ord: 1 }))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => linalg.matrixPower(eye(2), 0.5))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('say where there is no gradient', () => {
    const a = randn([3, 2], { requiresGrad: true });
    expect(() => linalg.qr(a, { mode: 'r' }).R.sum().backward()).toThrow("no gradient through the mode 'r'");
    expect(codeOf(() => linalg.qr(a, { mode: 'complete' }).Q.sum().backward())).toBe('ERR_TENSOR_AUTOGRAD');
  });
});

test.each([
  [3, 2],
  [2, 3],
])('vectors that make U and Vh of %d × %d square are constants for the gradient, as in PyTorch', (m, n) => {
  const values = arange(1, m * n + 1, 1, { dtype: 'float64' })
    .sin()
    .reshape([m, n]);
  const k = Math.min(m, n);
  const [ofFull, ofReduced] = [true, false].map((fullMatrices) => {
    const a = values.clone();
    a.requiresGrad = true;
    const { U, S, Vh } = linalg.svd(a, { fullMatrices });
    const weights = (count: number): Tensor => arange(1, count + 1, 1, { dtype: 'float64' });
    const left = U.square().mul(weights(m).unsqueeze(1)).sum();
    const right = Vh.square().mul(weights(n)).sum();
    left
      .add(right)
      .add(S.mul(weights(k)).sum())
      .backward();
    return a.grad!;
  });
  expect(gap(ofFull!, ofReduced!)).toBeLessThan(1e-12);
});

test('least squares finds the nearest answer, and the shortest', () => {
  manualSeed(5);
  const [a, b] = [random(6, 3), random(6, 2)];
  const { solution, residuals, singularValues } = linalg.lstsq(a, b, { driver: 'gelsd' });
  expect(transposed(a).matmul(a.matmul(solution).sub(b)).abs().max().item()).toBeLessThan(1e-12);
  expect(residuals.shape).toEqual([2]);
  expect(singularValues.shape).toEqual([3]);
  const wide = random(2, 5);
  const short = linalg.lstsq(wide, random(2, 1)).solution;
  const nullSpace = linalg.svd(wide).Vh.narrow(0, 2, 3);
  expect(nullSpace.matmul(short).abs().max().item()).toBeLessThan(1e-12);
});

test('nothing is left in memory', () => {
  const a = random(2, 3, 3);
  const before = memory().bytes;
  scope(() => {
    a.requiresGrad = true;
    const x = linalg.solve(a, linalg.inv(a)).add(linalg.pinv(a));
    linalg.svdvals(x).sum().backward();
  });
  a.requiresGrad = false;
  expect(memory().bytes).toBe(before);
});

test('solve() and lstsq() name a missing right side, and cond() a norm of another kind', () => {
  for (const [name, call] of [
    ['linalg.solve', () => linalg.solve(eye(2), undefined as never)],
    ['linalg.lstsq', () => linalg.lstsq(eye(2), null as never)],
  ] as const)
    expect(call).toThrow(`${name}: expected b to be a tensor, got `);
  for (const p of [Symbol('2'), Object.create(null), 1n])
    expect(codeOf(() => linalg.cond(eye(2), p as never))).toBe('ERR_TENSOR_ARGUMENT');
});
