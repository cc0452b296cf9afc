// Errors of products under their own names and of diagonals, and what the comparison with PyTorch cannot say.
import { describe, expect, test } from 'vitest';
import * as t from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';

const row = (): t.Tensor => t.tensor([1, 2, 3]);
const grid = (): t.Tensor => t.arange(6).reshape([2, 3]);

test('gradients agree with finite differences', () => {
  gradCheck64(
    (a, b) =>
      t.tensordot(a!, b!, [
        [0, 2],
        [1, 0],
      ]),
    [leaf64([2, 3, 4], 1), leaf64([4, 2, 3], 2)],
  );
  gradCheck64((a, b) => t.kron(a!, b!), [leaf64([2, 2], 1), leaf64([3], 2)]);
  gradCheck64((a, b) => t.cross(a!, b!), [leaf64([2, 3], 1), leaf64([1, 3], 2)]);
  gradCheck64((a) => t.diagEmbed(a!, -1, 0, 2), [leaf64([2, 3])]);
});

test('a diagonal shares memory with the matrix', () => {
  const a = t.zeros([2, 2]);
  a.diagonal().fill_(1);
  expect(a.toArray()).toEqual([
    [1, 0],
    [0, 1],
  ]);
});

test('integers beyond 2^53 are exact', () => {
  const large = t.tensor([2n ** 60n, 1n]);
  expect(t.outer(large, large).dataSync()[1]).toBe(2n ** 60n);
  expect(t.trace(t.diag(large)).dataSync()[0]).toBe(2n ** 60n + 1n);
});

describe('a factor of 0', () => {
  const nothing = () => t.full([2, 2], Number.NaN);
  const batch = (a: t.Tensor) => a.unsqueeze(0);
  const [input, a] = [t.tensor([10, 20]), t.tensor([1, 2, 3, 4]).reshape([2, 2])];
  const sums = [
    [10, 20],
    [10, 20],
  ];
  const products = [
    [7, 10],
    [15, 22],
  ];

  test.each<[string, t.Tensor, unknown]>([
    ['addmm', t.addmm(input, nothing(), a, { alpha: 0 }), sums],
    ['addmm, right', t.addmm(input, a, nothing(), { alpha: 0 }), sums],
    ['addmv', t.addmv(input, nothing(), t.ones([2]), { alpha: 0 }), [10, 20]],
    ['baddbmm', t.baddbmm(input, batch(nothing()), batch(a), { alpha: 0 }), [sums]],
    ['addbmm', t.addbmm(input, batch(nothing()), batch(a), { alpha: 0 }), sums],
  ])('as alpha hides NaN of the product: %s', (_, found, expected) => {
    expect(found.toArray()).toEqual(expected);
  });

  test('as beta hides NaN of the input, and as both gives 0', () => {
    expect(t.addmm(nothing(), a, a, { beta: 0 }).toArray()).toEqual(products);
    expect(t.addmm(nothing(), nothing(), a, { beta: 0, alpha: 0 }).toArray()).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });

  test('as alpha of addr hides no NaN, as in PyTorch', () => {
    const [left, right] = [t.tensor([Number.NaN, 1]), t.ones([2])];
    expect(t.addr(input, left, right, { alpha: 0 }).toArray()).toEqual([
      [Number.NaN, Number.NaN],
      [10, 20],
    ]);
    expect(t.addr(nothing(), right, right, { beta: 0 }).toArray()).toEqual([
      [1, 1],
      [1, 1],
    ]);
  });

  test('as alpha leaves the gradients of the factors 0, and the input its own', () => {
    const leaves = [input, a, a].map((each) => each.clone());
    for (const leaf of leaves) leaf.requiresGrad = true;
    t.addmm(leaves[0]!, leaves[1]!, leaves[2]!, { alpha: 0 }).sum().backward();
    const zeros = [
      [0, 0],
      [0, 0],
    ];
    expect(leaves.map((leaf) => leaf.grad!.toArray())).toEqual([[2, 2], zeros, zeros]);
  });
});

const wrong: readonly [string, () => unknown, string][] = [
  ['outer', () => grid().outer(row()), 'outer: the first operand: expected 1 dimensions'],
  ['mm', () => grid().mm(row()), 'mm: the second operand: expected 2 dimensions'],
  [
    'bmm',
    () => t.ones([2, 1, 1]).bmm(t.ones([3, 1, 1])),
    'bmm: the shapes [2, 1, 1] and [3, 1, 1] do not fit',
  ],
  ['dot', () => row().dot(t.ones([2])), 'matmul: cannot multiply [3] by [2]'],
  ['inner', () => row().inner(t.ones([2])), 'inner: the shapes [3] and [2] do not fit'],
  [
    'tensordot',
    () => t.tensordot(row(), row(), 2),
    'tensordot: dims: expected an integer from 0 to 1, got 2',
  ],
  ['tensordot, lists', () => t.tensordot(row(), row(), [[0], []]), 'expected two lists of one length'],
  ['cross', () => t.cross(grid(), grid(), 0), 'cross: the shapes [2, 3] and [2, 3] do not fit; vectors of 3'],
  ['addmm', () => row().addmm(grid(), grid().t().to('float64')), 'addmm: expected one dtype'],
  [
    'addmm, alpha',
    () => t.addmm(row(), grid(), grid().t(), { alpha: '1' as never }),
    'alpha: expected a number',
  ],
  ['diagonal', () => grid().diagonal(0, 1, -1), 'diagonal: expected two different dimensions, got 1 and -1'],
  ['diag', () => t.ones([1, 1, 1]).diag(), 'diag: expected 1 or 2 dimensions'],
  ['diagEmbed', () => t.tensor(1).diagEmbed(), 'diagEmbed: expected at least 1 dimensions'],
  ['trace', () => row().trace(), 'trace: expected 2 dimensions'],
  ['trilIndices', () => t.trilIndices(-1, 2), 'trilIndices: rows: expected an integer ≥ 0'],
  ['triuIndices', () => t.triuIndices(1, 2, 0.5), 'triuIndices: expected offset to be an integer'],
  ['blockDiag', () => t.blockDiag(t.ones([1, 1, 1])), 'blockDiag: expected 0, 1 or 2 dimensions'],
];
test.each(wrong)('a wrong call of %s is refused', (_, call, message) => {
  expect(call).toThrow(message);
  expect(codeOf(call)).toMatch(/^ERR_TENSOR_/);
});
