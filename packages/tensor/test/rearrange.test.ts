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
  unbind,
  unflatten,
  varMean,
  zeros,
} from '../src/index.ts';
import { codeOf } from './code-of.ts';
import { gradCheck64, leaf64 } from './leaf64.ts';

const table = (shape: Shape): Tensor => arange(shape.reduce((x, y) => x * y, 1)).reshape(shape);
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
    expect(flip(tensor(7), []).item()).toBe(7);
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
    for (const p of [1, 2, 3, Infinity]) check((x) => norm(x, 1, { p }));
    check((x) => add(...varMean(x, [0, 2], { correction: 0, keepDim: true })));
    expect(() => norm(a, 0, { p: 0 })).toThrow('norm: p: expected a number > 0, got 0');
  });

  test('a vector of zeros has the gradient 0', () => {
    const a = zeros([3], { requiresGrad: true });
    norm(a).backward();
    expect(a.grad!.toArray()).toEqual([0, 0, 0]);
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

  test('says what does not fit', () => {
    const [a, b] = [zeros([2, 3]), zeros([4, 2])];
    expect(() => einsum('ij,jk->ik', a, b)).toThrow(
      "einsum: expected one size for 'j', not 3 and 4, got 'ij,jk->ik'",
    );
    expect(() => einsum('ii->i', a)).toThrow('none twice in one operand');
    expect(() => einsum('...j->j', a)).toThrow('a letter for each dimension');
    expect(() => einsum('ij', a, b)).toThrow('expected letters for 2 operands');
    expect(() => einsum('i->i', a)).toThrow('expected 2 letters for operand 0');
    expect(() => einsum('ij->k', a)).toThrow("not 'k'");
  });
});

/** The sum over every letter, one product at a time. */
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
    check(softplus);
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
