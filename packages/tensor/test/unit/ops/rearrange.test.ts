// Tests flip, roll, repeat, unbind, unflatten, norm, varMean, einsum, some activations, linspace and eye.
import { describe, expect, test } from 'vitest';
import {
  add,
  arange,
  einsum,
  elu,
  eye,
  flip,
  leakyRelu,
  linspace,
  norm,
  repeat,
  roll,
  type Shape,
  softplus,
  type Tensor,
  tensor,
  tile,
  unbind,
  unflatten,
  varMean,
  zeros,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, gradientsOf, leaf64 } from '../../support/leaf64.ts';
import { expectCase, leafOf } from '../../support/torch-case.ts';

/** Returns a tensor that counts from 0. */
const table = (shape: Shape): Tensor => arange(shape.reduce((x, y) => x * y, 1)).reshape(shape);
/** Checks the gradient of `fn` with weights for the elements of the result. */
const check = (fn: (x: Tensor) => Tensor, shape: Shape = [2, 3, 4]): void =>
  gradCheck64(
    (x) => {
      const out = fn(x!);
      return out.mul(table(out.shape));
    },
    [leaf64(shape)],
  );

describe('flip, roll and repeat', () => {
  test('flip turns the order around, of any layout and size', () => {
    const a = table([2, 3]);
    expect(flip(a, 1).toArray()).toEqual([
      [2, 1, 0],
      [5, 4, 3],
    ]);
    expect(flip(a.t(), [0, -1]).toArray()).toEqual([
      [5, 2],
      [4, 1],
      [3, 0],
    ]);
    expect(
      flip(table([70, 130]), 1)
        .at(69, [0, 2])
        .toArray(),
    ).toEqual([9099, 9098]);
    expect(flip(zeros([3, 0]), 0).shape).toEqual([3, 0]);
    for (const dims of [[], 0, [-1]]) expect(flip(tensor(7), dims).item()).toBe(7);
    expect(codeOf(() => flip(a, [0, -2]))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => flip(a, undefined as never))).toBe('ERR_TENSOR_ARGUMENT');
    check((x) => flip(x, [0, 2]));
  });

  test('roll moves what leaves at the end to the start', () => {
    expect(roll(arange(4), 1, 0).toArray()).toEqual([3, 0, 1, 2]);
    expect(roll(table([2, 3]), -7).toArray()).toEqual([
      [1, 2, 3],
      [4, 5, 0],
    ]);
    expect(roll(zeros([0]), 3, 0).shape).toEqual([0]);
    check((x) => roll(x, 2, 1));
    check((x) => roll(x, -5));
  });

  test('roll moves along several dimensions, one shift for each', () => {
    expectCase(
      [leafOf(table([2, 3]))],
      (x) => roll(x, [1, -1], [0, 1]),
      [
        [4, 5, 3],
        [1, 2, 0],
      ],
      [
        [6, 4, 5],
        [3, 1, 2],
      ],
    );
    // Shifts of one dimension add up.
    expect(roll(table([2, 3]), [1, 5, 1], [0, -1, 0]).toArray()).toEqual([
      [1, 2, 0],
      [4, 5, 3],
    ]);
    expect(roll(table([3, 2]).t(), [1], []).toArray()).toEqual(roll(table([3, 2]).t(), 1).toArray());
    expect(roll(tensor(3), 1).item()).toBe(3);
    expect(roll(zeros([2, 0]), [1, 2], [0, 1]).shape).toEqual([2, 0]);
    for (const [shifts, dims] of [
      [[1, 2], undefined],
      [1, [0, 1]],
      [[1, 2], 0],
      [[], undefined],
    ] as const)
      expect(() => roll(table([2, 3]), shifts, dims)).toThrow('expected one shift for each dimension');
    expect(codeOf(() => roll(table([2, 3]), [1, 1], [0, 2]))).toBe('ERR_TENSOR_SHAPE');
    check((x) => roll(x.transpose(0, 2), [1, -2], [-1, 1]));
  });

  test('a dimension without elements takes counts below 0, as in PyTorch; others do not', () => {
    const none = zeros([0, 2]);
    expect([tile(none, [-1, 2]).shape, repeat(none, [-3, 1]).shape]).toEqual([
      [0, 4],
      [0, 2],
    ]);
    for (const counts of [[-1], [-1, 1, 1], [1, -1]])
      expect(codeOf(() => tile(none, counts))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => repeat(none, [Symbol('1') as never, 1]))).toBe('ERR_TENSOR_SHAPE');
  });

  test('repeat lays copies side by side', () => {
    expect(repeat(tensor([1, 2]), [2, 2]).toArray()).toEqual([
      [1, 2, 1, 2],
      [1, 2, 1, 2],
    ]);
    expect(repeat(tensor([1, 2]), [0]).shape).toEqual([0]);
    expect(repeat(tensor(3), [2]).toArray()).toEqual([3, 3]);
    const a = tensor([1, 2]);
    repeat(a, [1]).fill_(9);
    expect(a.toArray()).toEqual([1, 2]);
    check((x) => repeat(x, [2, 1, 3, 2]));
  });

  test('refuse what they cannot do', () => {
    const a = zeros([2, 3]);
    expect(() => flip(a, 2)).toThrow('flip: expected a dimension from -2 to 1, got 2');
    expect(() => roll(a, 0.5, 0)).toThrow('roll: shift: expected an integer, got 0.5');
    expect(() => repeat(a, [2])).toThrow('repeat: counts: expected at least 2, got 1');
    expect(codeOf(() => repeat(a, [1, -1]))).toBe('ERR_TENSOR_SHAPE');
  });
});

describe('unbind and unflatten', () => {
  test('share memory, and pass gradients on', () => {
    const a = table([2, 3]);
    unbind(a, 1)[2]!.fill_(9);
    unflatten(a, 1, [-1, 3]).select(0, 0).select(0, 0).select(0, 1).fill_(7);
    expect(a.toArray()).toEqual([
      [0, 7, 9],
      [3, 4, 9],
    ]);
    check((x) => add(unbind(x, 1)[0]!, unbind(x, 1)[2]!));
    check((x) => unflatten(x, -1, [2, -1]));
    for (const sizes of [[3, -1], [2, 1.5], [-1, -1, 2], [5]]) {
      expect(codeOf(() => unflatten(a, 0, sizes))).toBe('ERR_TENSOR_SHAPE');
    }
  });
});

describe('norm and varMean', () => {
  test('give the values and gradients of their formulas', () => {
    const a = tensor([
      [3, -4],
      [0, 0],
    ]);
    expect(norm(a, 1).toArray()).toEqual([5, 0]);
    expect(norm(a, undefined, { p: 1 }).item()).toBe(7);
    expect(norm(a, [0, 1], { p: Infinity, keepDim: true }).toArray()).toEqual([[4]]);
    expect(varMean(tensor([1, 3])).map((each) => each.item())).toEqual([2, 2]);
    for (const p of [0.5, 1, 1.5, 2, 3, -1, Infinity, -Infinity]) check((x) => norm(x, 1, { p }));
    check((x) => add(...varMean(x, [0, 2], { correction: 0, keepDim: true })));
    expect(norm(a, 1, { p: 0 }).toArray()).toEqual([2, 0]);
    expect(norm(zeros([2, 0]), 1).toArray()).toEqual([0, 0]);
    for (const p of [Infinity, -Infinity, -1])
      expect(() => norm(zeros([2, 0]), 1, { p })).toThrow('norm: nothing to choose from');
    expect(norm(a, 1, { p: -Infinity }).toArray()).toEqual([3, 0]);
    expect(() => norm(a, 0, { p: NaN })).toThrow('norm: p: expected a number, got NaN');
    expect(norm(tensor([300, 400], { dtype: 'float16' })).item()).toBe(500);
  });

  test.each([
    [0, [2, 3], [[0, 0, 0], [0, 0, 0]]], // biome-ignore format: one case a line
    [-Infinity, [0, 1], [[0, -0, 0], [-0, 0, 2]]], // biome-ignore format: one case a line
    [Infinity, [4, 2], [[0, -1, 0], [-1, 1, 0]]], // biome-ignore format: one case a line
    // biome-ignore format: one case a line
    [0.5, [13.928203, 14.656854], [[2.1547005, -1.8660254, 0], [-5.4142132, 5.4142132, 7.6568542]]],
    [-1, [0, 0.5], [[0, -0, 0], [-0.125, 0.125, 0.5]]], // biome-ignore format: one case a line
  ] as [number, number[], number[][]][])('of p = %d as PyTorch, also of a strided view', (p, out, grad) => {
    const values = tensor([
      [3, -4, 0],
      [-2, 2, 1],
    ]);
    expectCase([leafOf(values)], (x) => norm(x, 1, { p }), out, grad);
    const turned = leafOf(values.t().contiguous());
    expect(norm(turned.t(), -1, { p, keepDim: true }).flatten().toArray()).toEqual(
      out.map((value) => expect.closeTo(value, 5)),
    );
  });

  test('of nothing is 0 where that has a meaning', () => {
    for (const p of [0, 0.5, 1, 2, 3]) expect(norm(zeros([2, 0]), 1, { p }).toArray()).toEqual([0, 0]);
    for (const p of [-Infinity, -1, Infinity]) {
      expect(codeOf(() => norm(zeros([2, 0]), 1, { p }))).toBe('ERR_TENSOR_SHAPE');
      expect(norm(zeros([0, 2]), 1, { p }).shape).toEqual([0]);
    }
    // Squares leave the range of float16; the norm does not.
    expect(norm(tensor([300, 400], { dtype: 'float16' })).item()).toBe(500);
    expect(norm(tensor([NaN, 0, 2]), 0, { p: 0 }).item()).toBe(2);
  });

  test('have the gradients of PyTorch at 0 and at NaN', () => {
    for (const p of [0.5, 1, 1.5, 2, 3, Infinity, -Infinity]) {
      expect(gradientsOf((x) => norm(x, 0, { p }), [0, 0])).toEqual([[0, 0]]);
      const ofOne = p === -Infinity ? 0 : expect.closeTo(1, 12);
      expect(gradientsOf((x) => norm(x, 0, { p }), [0, 2])).toEqual([[0, ofOne]]);
    }
    const atNaN: [p: number, want: number[]][] = [
      [0.5, [NaN, NaN]],
      [1, [0, 1]],
      [2, [NaN, NaN]],
      [3, [NaN, NaN]],
      [Infinity, [0, 0]],
    ];
    for (const [p, want] of atNaN) expect(gradientsOf((x) => norm(x, 0, { p }), [NaN, 1])).toEqual([want]);
  });
});

describe('einsum', () => {
  test.each([
    ['ij->ji', [[2, 3]]],
    ['ij->', [[2, 3]]],
    [
      'ij,jk',
      [
        [2, 3],
        [3, 4],
      ],
    ],
    ['bij,bjk,k->ib', [[2, 3, 4], [2, 4, 5], [5]]],
    ['i,j->ij', [[2], [3]]],
    ['i,i->', [[3], [3]]],
    [
      'bhqd,bhkd->bhqk',
      [
        [2, 2, 3, 2],
        [2, 2, 4, 2],
      ],
    ],
    [
      'ij,kl->jl',
      [
        [2, 3],
        [4, 2],
      ],
    ],
    [',i->i', [[], [3]]],
  ] as [string, Shape[]][])('%s is the sum that its letters say', (equation, shapes) => {
    const inputs = shapes.map((shape, n) => leaf64(shape, n + 1));
    const out = einsum(equation, ...inputs);
    expect(out.reshape([-1]).toArray()).toEqual(
      slowEinsum(equation, inputs).map((x) => expect.closeTo(x, 10)),
    );
    gradCheck64((...each) => einsum(equation, ...each), inputs);
  });

  test('a letter twice in one operand takes its diagonal', () => {
    const square = (): Tensor => leafOf(table([3, 3]));
    expectCase(
      [square()],
      (x) => einsum('ii->i', x),
      [0, 4, 8],
      [
        [1, 0, 0],
        [0, 2, 0],
        [0, 0, 3],
      ],
    );
    expectCase([square()], (x) => einsum('ii', x), 12, [
      [1, 0, 0],
      [0, 1, 0],
      [0, 0, 1],
    ]);
    expectCase(
      [leafOf(table([2, 2, 3]))],
      (x) => einsum('iij->ji', x),
      [
        [0, 9],
        [1, 10],
        [2, 11],
      ],
      [
        [
          [1, 3, 5],
          [0, 0, 0],
        ],
        [
          [0, 0, 0],
          [2, 4, 6],
        ],
      ],
    );
    expect(einsum('iijj->ij', table([2, 2, 3, 3])).toArray()).toEqual([
      [0, 4, 8],
      [27, 31, 35],
    ]);
    gradCheck64((x, y) => einsum('ii,ij->j', x!.t(), y!).square(), [leaf64([3, 3]), leaf64([3, 2], 2)]);
    gradCheck64((x) => einsum('ijij', x!.permute([1, 0, 3, 2])), [leaf64([2, 3, 2, 3])]);
  });

  test("'...' stands for the dimensions without a letter, which are broadcast", () => {
    expectCase(
      [leafOf(table([2, 2, 3])), leafOf(table([3, 2]))],
      (x, y) => einsum('...ij,jk->...ik', x, y),
      [
        [
          [10, 13],
          [28, 40],
        ],
        [
          [46, 67],
          [64, 94],
        ],
      ],
      [
        [
          [2, 8, 14],
          [4, 18, 32],
        ],
        [
          [6, 28, 50],
          [8, 38, 68],
        ],
      ],
      [
        [102, 120],
        [118, 140],
        [134, 160],
      ],
    );
    // Without an arrow, the dimensions of the ellipsis come first, then the letters in order.
    expect(einsum('b...a', table([1, 2, 3])).toArray()).toEqual([
      [[0], [1], [2]],
      [[3], [4], [5]],
    ]);
    expect(einsum('i...->i', table([2, 3])).toArray()).toEqual([3, 12]);
    expect(einsum('ij->...ij', table([2, 3])).shape).toEqual([2, 3]);
    const stretched = einsum('...ij,...jk', table([2, 1, 2, 3]), table([4, 3, 2]));
    expect(stretched.shape).toEqual([2, 4, 2, 2]);
    expect(einsum('...ii->...', table([2, 0, 0])).toArray()).toEqual([0, 0]);
    gradCheck64(
      (x, y) => einsum('i...j,...j->...i', x!, y!).square(),
      [leaf64([2, 3, 1, 4]), leaf64([5, 4], 2)],
    );
  });

  test('sizes of 1 are stretched, and integers keep their dtype or become sums', () => {
    expectCase(
      [leafOf(table([2, 1])), leafOf(table([3, 2]))],
      (x, y) => einsum('ij,jk->ik', x, y),
      [
        [0, 0],
        [6, 9],
      ],
      [[24], [54]],
      [
        [3, 4],
        [3, 4],
        [3, 4],
      ],
    );
    const a = table([2, 3]).to('int32');
    const product = einsum('ij,kj->ik', a, a);
    expect([product.dtype, product.toArray()]).toEqual([
      'int32',
      [
        [5, 14],
        [14, 50],
      ],
    ]);
    expect(einsum('ij->j', a)).toMatchObject({ dtype: 'int64' });
    const both = a.to('bool');
    expect(einsum('ij,ij->ij', both, both)).toMatchObject({ dtype: 'bool' });
  });

  test('says what does not fit', () => {
    const [a, b] = [zeros([2, 3]), zeros([4, 2])];
    expect(() => einsum('ij,jk->ik', a, b)).toThrow(
      "einsum: expected one size for 'j', not 3 and 4, got 'ij,jk->ik'",
    );
    expect(() => einsum('ii->i', a)).toThrow("expected one size for 'i' in operand 0, not 2 and 3");
    expect(() => einsum('...,...', a, b)).toThrow("expected one size for a dimension under '...'");
    for (const bad of ['. . .j', '..ij', '...i...', 'i1->i'])
      expect(() => einsum(bad, a)).toThrow('a letter for each dimension');
    expect(() => einsum('ij->ii', a)).toThrow('an output in which no letter is repeated');
    expect(() => einsum('ij->i->i', a)).toThrow("expected one '->'");
    expect(() => einsum('ijk...', a)).toThrow('expected 2 letters for operand 0');
    expect(codeOf(() => einsum('ij,jk->ik', a.to('bool'), b.t().t().narrow(0, 0, 3).to('bool')))).toBe(
      'ERR_TENSOR_DTYPE',
    );
    expect(() => einsum('ij', a, b)).toThrow('expected letters for 2 operands');
    expect(() => einsum('i->i', a)).toThrow('expected 2 letters for operand 0');
    expect(() => einsum('ij->k', a)).toThrow("not 'k'");
  });
});

/** Computes an einsum by a loop over every letter, one product at a time. */
function slowEinsum(equation: string, inputs: readonly Tensor[]): number[] {
  const [left = '', right] = equation.split('->');
  const names = left.split(',');
  const letters = [...new Set(names.join(''))];
  const output =
    right ??
    letters
      .filter((name) => names.join('').split(name).length === 2)
      .sort()
      .join('');
  const sizeOf = (name: string): number => {
    const i = names.findIndex((each) => each.includes(name));
    return inputs[i]!.shape[names[i]!.indexOf(name)]!;
  };
  const at = (order: Iterable<string>, index: Record<string, number>): number =>
    [...order].reduce((sum, name) => sum * sizeOf(name) + index[name]!, 0);
  const totals = new Array<number>([...output].reduce((count, name) => count * sizeOf(name), 1)).fill(0);
  const total = letters.reduce((count, name) => count * sizeOf(name), 1);
  for (let i = 0; i < total; i++) {
    let rest = i;
    const index: Record<string, number> = {};
    for (const name of letters) {
      index[name] = rest % sizeOf(name);
      rest = Math.floor(rest / sizeOf(name));
    }
    const factors = inputs.map((input, n) => Number(input.dataSync()[at(names[n]!, index)]));
    totals[at(output, index)]! += factors.reduce((x, y) => x * y, 1);
  }
  return totals;
}

describe('activations made of others', () => {
  test('hold their formulas far from 0 and have gradients', () => {
    const a = tensor([-200, -1, 2, 200]);
    expect(leakyRelu(a, 0.5).toArray()).toEqual([-100, -0.5, 2, 200]);
    expect(elu(a, 2).toArray()).toEqual([-2, expect.closeTo(2 * Math.expm1(-1), 5), 2, 200]);
    expect(softplus(a).toArray()).toEqual([
      0,
      expect.closeTo(Math.log1p(Math.exp(-1)), 5),
      expect.closeTo(Math.log1p(Math.exp(2)), 5),
      200,
    ]);
    check((x) => leakyRelu(x, 0.2));
    check((x) => elu(x, 0.7));
    check((x) => softplus(x));
  });
});

describe('linspace and eye', () => {
  test('reach the end exactly', () => {
    expect(linspace(0, 1, 5).toArray()).toEqual([0, 0.25, 0.5, 0.75, 1]);
    expect(linspace(3, 0.1, 7, { dtype: 'float64' }).at(-1).item()).toBe(0.1);
    expect(linspace(2, 5, 1).toArray()).toEqual([2]);
    expect(linspace(2, 5, 0).shape).toEqual([0]);
    expect(() => linspace(0, 1, -1)).toThrow('linspace: count: expected an integer ≥ 0, got -1');
    expect(eye(2, 3, { dtype: 'int64' }).toArray()).toEqual([
      [1, 0, 0],
      [0, 1, 0],
    ]);
    expect(codeOf(() => eye(-1))).toBe('ERR_TENSOR_SHAPE');
  });
});
