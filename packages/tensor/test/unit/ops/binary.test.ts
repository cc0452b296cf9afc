// Tests operations of two tensors, or of a tensor and a number, and the dtype in which they meet.
import { describe, expect, test } from 'vitest';
import {
  add,
  div,
  eq,
  generator,
  gradCheck,
  gt,
  lt,
  matmul,
  maximum,
  minimum,
  mul,
  type Operand,
  pow,
  randn,
  sub,
  type Tensor,
  tensor,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, gradientsOf, leaf64 } from '../../support/leaf64.ts';

const numeric: [
  name: string,
  op: (a: Operand, b: Operand) => Tensor,
  want: (a: number, b: number) => number,
][] = [
  ['add', add, (a, b) => a + b],
  ['sub', sub, (a, b) => a - b],
  ['mul', mul, (a, b) => a * b],
  ['div', div, (a, b) => a / b],
  ['eq', eq, (a, b) => Number(a === b)],
  ['lt', lt, (a, b) => Number(a < b)],
  ['gt', gt, (a, b) => Number(a > b)],
];

describe.each(numeric)('%s', (_, op, want) => {
  test('computes each element, and broadcasts as NumPy does', () => {
    const a = [
      [1, 2, -4],
      [0.5, 8, 16],
    ];
    const row = [2, 2, 4];
    expect(op(tensor(a), tensor(a)).toArray()).toEqual(a.map((r) => r.map((x) => want(x, x))));
    expect(op(tensor(a), tensor(row)).toArray()).toEqual(a.map((r) => r.map((x, c) => want(x, row[c]!))));
    expect(op(tensor(row), tensor(a)).toArray()).toEqual(a.map((r) => r.map((x, c) => want(row[c]!, x))));
    const column = op(tensor([[1], [2]]), tensor([4, 2, 1]));
    expect(column.toArray()).toEqual([1, 2].map((x) => [4, 2, 1].map((y) => want(x, y))));
    expect(op(tensor([]), tensor(3)).shape).toEqual([0]);
  });

  test('takes a number on either side', () => {
    expect(op(tensor([1, 2, 4]), 2).toArray()).toEqual([1, 2, 4].map((x) => want(x, 2)));
    expect(op(2, tensor([1, 2, 4])).toArray()).toEqual([1, 2, 4].map((x) => want(2, x)));
    expect(op(6, 2).item()).toBe(want(6, 2));
  });

  test('refuses shapes that do not broadcast', () => {
    expect(codeOf(() => op(tensor([1, 2]), tensor([1, 2, 3])))).toBe('ERR_TENSOR_SHAPE');
  });
});

describe.each(numeric.slice(0, 4))('gradient of %s', (_, op) => {
  const from = generator(3);
  const leaf = (shape: number[]): Tensor => {
    const values = randn(shape, { generator: from });
    // Keep values away from zero, for division.
    return tensor(
      (values.dataSync() as Float32Array).map((x) => x + Math.sign(x)),
      { shape, requiresGrad: true },
    );
  };
  test.each([
    [[4], [4]],
    [[2, 3], [3]],
    [[3], [2, 3]],
    [
      [2, 1, 3],
      [4, 1],
    ],
    [[], [2, 2]],
    [
      [1, 3],
      [2, 3],
    ],
    [[1, 1], [3]],
  ])('with shapes %j and %j', (a, b) => {
    gradCheck((x, y) => op(x!, y!), [leaf(a), leaf(b)]);
  });

  test('with a number on either side, and with the same tensor on both', () => {
    gradCheck((x) => op(x!, 3), [leaf([3])]);
    gradCheck((x) => op(3, x!), [leaf([3])]);
    gradCheck((x) => op(x!, x!), [leaf([3])]);
  });
});

describe('dtypes', () => {
  test('the wider dtype wins: int32, int64, float32', () => {
    const [i32, i64, f32] = (['int32', 'int64', 'float32'] as const).map((dtype) =>
      tensor([1, 7], { dtype }),
    );
    expect(add(i32!, i32!).dtype).toBe('int32');
    expect(add(i32!, i64!).dtype).toBe('int64');
    expect(mul(f32!, i64!).dtype).toBe('float32');
    expect(mul(f32!, i64!).toArray()).toEqual([1, 49]);
    expect(eq(i32!, i64!).toArray()).toEqual([1, 1]);
  });

  test('a whole number keeps integers, a fraction and a division make float32', () => {
    const a = tensor([1, 3], { dtype: 'int64' });
    expect(add(a, 2).dtype).toBe('int64');
    expect(add(a, 0.5).toArray()).toEqual([1.5, 3.5]);
    expect(div(a, 2)).toMatchObject({ dtype: 'float32' });
    expect(div(a, 2).toArray()).toEqual([0.5, 1.5]);
  });

  test.each(['int32', 'int64', 'uint8'] as const)(
    'matmul of %s, which wraps around as in PyTorch',
    (dtype) => {
      const a = tensor([[1, 2, 3], [4, 5, 6]], { dtype }); // biome-ignore format: a matrix
      const b = tensor([[1, 0], [2, 1], [0, 100]], { dtype }); // biome-ignore format: a matrix
      const product = matmul(a, b);
      expect(product).toMatchObject({ dtype, shape: [2, 2] });
      const wrapped = dtype === 'uint8' ? [302 % 256, 605 % 256] : [302, 605];
      expect(product.toArray()).toEqual([[5, wrapped[0]], [14, wrapped[1]]]); // biome-ignore format: a matrix
    },
  );

  test('matmul of two integer dtypes, or of bool, is refused', () => {
    const [a, b] = [tensor([[1]], { dtype: 'int32' }), tensor([[1]], { dtype: 'int64' })];
    expect(() => matmul(a, b)).toThrow(/^matmul: expected one dtype, got int32 and int64/);
    expect(() => matmul(tensor([[true]]), tensor([[true]]))).toThrow(/^matmul: expected numbers, got bool/);
  });
});

describe('further operations', () => {
  test('maximum, minimum and pow follow PyTorch', () => {
    const a = tensor([1, 5, NaN]);
    expect(a.maximum(3).toArray()).toEqual([3, 5, NaN]);
    expect(a.minimum(tensor([0, 9, 9])).toArray()).toEqual([0, 5, NaN]);
    expect(tensor([2, 3], { dtype: 'int32' }).pow(3).toArray()).toEqual([8, 27]);
    expect(pow(2, tensor([0.5, -1])).toArray()).toEqual([Math.fround(Math.SQRT2), 0.5]);
  });

  test('have the right gradients, also shared at ties and at powers of 0', () => {
    gradCheck64((x, y) => maximum(x!, y!).square(), [leaf64([2, 3]), leaf64([3], 2)]);
    gradCheck64((x, y) => minimum(x!, y!.t()).square(), [leaf64([2, 3]), leaf64([3, 2], 2)]);
    gradCheck64((x, y) => pow(x!.exp(), y!), [leaf64([2, 3]), leaf64([3], 2)]);
    gradCheck64((x) => x!.pow(3), [leaf64([4])]);
    gradCheck64((x) => pow(2.5, x!), [leaf64([4])]);
    const x = tensor([0, 0, 2], { requiresGrad: true });
    x.pow(tensor([0, 2, 1]))
      .sum()
      .backward();
    expect(x.grad!.toArray()).toEqual([0, 0, 1]);
    const tied = tensor([4, 1], { requiresGrad: true });
    maximum(tied, tensor([4, 4]))
      .sum()
      .backward();
    expect(tied.grad!.toArray()).toEqual([0.5, 0]);
  });

  test('comparisons and logic give bool', () => {
    const [a, b] = [tensor([1, 2, 3]), tensor([3, 2, 1])];
    const results = [
      a.ne(b),
      a.le(b),
      a.ge(b),
      a.gt(1).logicalAnd(b.gt(1)),
      a.gt(2).logicalXor(b.gt(1)),
      a.gt(2).logicalNot(),
    ];
    expect(results.map((result) => result.dtype)).toEqual(results.map(() => 'bool'));
    expect(results.map((result) => result.toArray())).toEqual([
      [1, 0, 1],
      [1, 1, 0],
      [0, 1, 1],
      [0, 1, 0],
      [1, 1, 1],
      [1, 1, 0],
    ]);
  });
});

describe('gradients at the edge, as in PyTorch', () => {
  test('maximum and minimum: both sides get all of it where one is NaN', () => {
    const [a, b] = [
      [1, 2, 3, NaN, 1, NaN],
      [2, 2, 1, 1, NaN, NaN],
    ];
    expect(gradientsOf(maximum, a!, b!)).toEqual([
      [0, 0.5, 1, 1, 1, 1],
      [1, 0.5, 0, 1, 1, 1],
    ]);
    expect(gradientsOf(minimum, a!, b!)).toEqual([
      [1, 0.5, 0, 1, 1, 1],
      [0, 0.5, 1, 1, 1, 1],
    ]);
  });

  test('pow: at a base of 0, and at an exponent of 0', () => {
    expect(gradientsOf(pow, [0, 0, 0, 0, 2, -2, NaN], [0, 2, -1, 0.5, 3, 2, 0])).toEqual([
      [0, 0, -Infinity, Infinity, 12, -4, 0],
      [0, 0, -Infinity, 0, expect.closeTo(5.545177444479562, 12), NaN, NaN],
    ]);
    expect(gradientsOf((b) => pow(0, b), [0, 2, -1, 0.5])).toEqual([[0, 0, -Infinity, 0]]);
    expect(gradientsOf((a) => pow(a, 0), [0, 2, NaN, Infinity])).toEqual([[0, 0, 0, 0]]);
    expect(gradientsOf((a) => pow(a, 0.5), [4, 0])).toEqual([[0.25, Infinity]]);
    expect(pow(tensor([-Infinity, 4]), 0.5).toArray()).toEqual([NaN, 2]);
  });

  test('sqrt and division are infinite at 0', () => {
    expect(gradientsOf((a) => a.sqrt(), [4, 0])).toEqual([[0.25, Infinity]]);
    expect(gradientsOf((a) => div(1, a), [2, 0])).toEqual([[-0.25, -Infinity]]);
  });
});

describe('numbers beside tensors', () => {
  const whole = tensor([2, 3], { dtype: 'int32' });

  test('integers have no negative powers', () => {
    expect(() => whole.pow(-1)).toThrow('pow: integers have no power of -1');
    expect(() => tensor([true]).pow(-1)).toThrow('pow: integers have no power of -1');
    expect(whole.pow(-0.5).dtype).toBe('float32');
    expect(whole.pow(tensor([-1, 2], { dtype: 'int32' })).toArray()).toEqual([0, 9]);
    expect(codeOf(() => tensor([3], { dtype: 'uint8' }).pow(300))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('are compared as the tensor holds them', () => {
    for (const dtype of ['float32', 'float16', 'bfloat16', 'float64'] as const) {
      const tenth = tensor([0.1], { dtype });
      expect([eq(tenth, 0.1), lt(tenth, 0.1), gt(0.1, tenth)].map((each) => each.item())).toEqual([1, 0, 0]);
      tenth.requiresGrad = true;
      maximum(tenth, 0.1).backward();
      expect(tenth.grad!.toArray()).toEqual([0.5]);
    }
  });

  test('beyond int64 they are floats, and beyond the dtype they bound nothing', () => {
    expect(whole.add(1e300)).toMatchObject({ dtype: 'float32' });
    expect(whole.add(1e300).toArray()).toEqual([Infinity, Infinity]);
    expect(lt(whole, 1e300).toArray()).toEqual([1, 1]);
    expect(lt(whole, 3e9).toArray()).toEqual([1, 1]);
    expect(() => maximum(whole, 3e9)).toThrow(
      'maximum: 3000000000 does not fit into int32, which holds -2147483648 to 2147483647',
    );
    expect(codeOf(() => minimum(tensor([1], { dtype: 'uint8' }), -1))).toBe('ERR_TENSOR_ARGUMENT');
  });
});

describe('arithmetic of bool', () => {
  const mask = tensor([true, true, false]);
  const other = tensor([true, false, false]);

  test('adds and multiplies as or and and', () => {
    expect([add(mask, other), mul(mask, other)].map((each) => each.dtype)).toEqual(['bool', 'bool']);
    expect(add(mask, other).toArray()).toEqual([1, 1, 0]);
    expect(mul(mask, other).toArray()).toEqual([1, 0, 0]);
    expect(add(mask, 1).toArray()).toEqual([2, 2, 1]);
  });

  test('has no differences and no powers, in place neither', () => {
    const differences = [
      () => sub(mask, other),
      () => sub(mask, 1),
      () => sub(1, mask),
      () => sub(tensor([1, 2, 3]), mask),
      () => tensor([1, 2, 3]).sub_(mask),
    ];
    for (const difference of differences)
      expect(difference).toThrow(/^sub_?: expected numbers, got bool. Use logicalXor, or .to\('int32'\)/);
    expect(codeOf(() => pow(mask, other))).toBe('ERR_TENSOR_DTYPE');
    expect(codeOf(() => mask.add_(1))).toBe('ERR_TENSOR_DTYPE');
    expect(pow(mask, 2).dtype).toBe('int64');
  });
});
