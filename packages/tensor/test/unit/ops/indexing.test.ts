// Tests indices that are tensors: at, set, indexPut, scatter and what is like it. The generator compares them with
// PyTorch; here are gradients in float64, memory, and errors.
import { describe, expect, test } from 'vitest';
import {
  arange,
  fromHost,
  indexPut,
  leakReport,
  maskedSelect,
  noGrad,
  nonzero,
  ones,
  scope,
  take,
  tensor,
  trackLeaks,
  where,
  zeros,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';

const ints = (values: number[], shape = [values.length]) => tensor(values, { dtype: 'int64', shape });
const bools = (values: number[], shape = [values.length]) => tensor(values, { dtype: 'bool', shape });

describe('at', () => {
  const a = arange(24).reshape([2, 3, 4]);

  test('takes positions: their shape stands at the indexed dimensions, or in front if these are apart', () => {
    expect(a.at(ints([1, 0, 1])).shape).toEqual([3, 3, 4]);
    expect(a.at(':', ints([2, 0], [2, 1]), ints([0, 3])).shape).toEqual([2, 2, 2]);
    expect(a.at(ints([0, 1]), ':', ints([0, 3])).shape).toEqual([2, 3]);
    expect(a.at(ints([0, 1]), ':', ints([0, 3])).toArray()).toEqual([
      [0, 4, 8],
      [15, 19, 23],
    ]);
    expect(a.at('...', ints([-1])).toArray()).toEqual(a.at('...', [3, 4]).toArray());
    expect(a.at(0, null, ints([2])).shape).toEqual([1, 1, 4]);
  });

  test('takes masks of one dimension or several, also beside numbers', () => {
    expect(a.at(a.gt(20)).toArray()).toEqual([21, 22, 23]);
    expect(a.at(bools([0, 1])).shape).toEqual([1, 3, 4]);
    expect(a.at(0, bools([1, 0, 1]), 1).toArray()).toEqual([1, 9]);
    expect(a.at(bools([0, 1, 0, 1, 0, 0], [2, 3]), ints([3])).toArray()).toEqual([7, 15]);
    expect(a.at(a.lt(0)).shape).toEqual([0]);
  });

  test('an integer tensor without dimensions is a number and gives a view', () => {
    const b = zeros([2, 3]);
    noGrad(() => b.at(tensor(1n)).fill_(7));
    expect(b.toArray()).toEqual([
      [0, 0, 0],
      [7, 7, 7],
    ]);
    b.at(ints([0])).fill_(9); // a copy
    expect(b.at(0, 0).item()).toBe(0);
  });

  test('names what is wrong', () => {
    expect(() => a.at(ints([0, 2]))).toThrow(
      'at: index 2 at position 1 is out of range; expected -2 to 1, where negative ones count from the end.',
    );
    expect(() => a.at(bools([1, 0, 1]))).toThrow(
      'at: a mask of shape [3] does not fit the dimensions [2] that it indexes.',
    );
    expect(codeOf(() => a.at(tensor([0.5])))).toBe('ERR_TENSOR_DTYPE');
    expect(codeOf(() => a.at(ints([0]), ints([0]), ints([0]), ints([0])))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => a.at(ints([0, 1]), ints([0, 1, 2])))).toBe('ERR_TENSOR_SHAPE');
    expect(() => a.at(true as never)).toThrow(/a tensor of positions or bool, got true/);
    expect(() => a.at([0, 1, 2, 0] as never)).toThrow(/For a list of positions use a tensor of int64/);
    expect(() => zeros([0, 3]).at(ints([0]))).toThrow(/out of range/);
    expect(zeros([0, 3]).at(ints([])).shape).toEqual([0, 3]);
  });

  test('gradients add up at elements that are named twice', () => {
    gradCheck64((x) => x!.at(ints([1, 0, 1])).square(), [leaf64([2, 3])]);
    gradCheck64(
      (x) =>
        x!
          .t()
          .at(ints([2, -1]), ':')
          .square(),
      [leaf64([2, 3])],
    );
    gradCheck64((x) => x!.at(ints([0, 1, 1]), ':', ints([2, 0, 0])).square(), [leaf64([2, 2, 3])]);
    gradCheck64((x) => x!.at(bools([0, 1, 1]), [0, 1]).square(), [leaf64([3, 2])]);
  });

  test('large positions are exact', () => {
    const wide = zeros([3]).expand([2 ** 20, 3]);
    expect(wide.at(ints([2 ** 20 - 1]), 2).shape).toEqual([1]);
    expect(() => a.at(tensor([2n ** 40n]))).toThrow(/index 1099511627776 at position 0/);
  });
});

describe('set and indexPut', () => {
  test('write in place through views, numbers and tensors', () => {
    const x = zeros([3, 4]);
    x.set([0], 1).set([':', -1], tensor([5, 6, 7]));
    x.t().set([ints([1, 1]), 2], tensor([8, 9]));
    expect(x.toArray()).toEqual([
      [1, 1, 1, 5],
      [0, 0, 0, 6],
      [0, 9, 0, 7],
    ]);
    x.set([x.lt(1)], -1).set([ints([0, 0])], 1, { accumulate: true });
    expect(x.toArray()).toEqual([
      [3, 3, 3, 7],
      [-1, -1, -1, 6],
      [-1, 9, -1, 7],
    ]);
    x.set([ints([0, 1])], x.at([1, 3])); // overlaps
    expect(x.at(':', 3).toArray()).toEqual([6, 7, 7]);
    expect(x.set([], 0)).toBe(x);
    expect(x.sum().item()).toBe(0);
  });

  test('refuse what they cannot do before they write', () => {
    const x = ones([2, 3]);
    expect(codeOf(() => x.set([ints([0])], tensor([1n])))).toBe('ERR_TENSOR_DTYPE');
    expect(codeOf(() => x.set([ints([0, 1])], ones([3, 3])))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => x.set([ints([0, 2])], 0))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => x.set(0 as never, 0))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => x.set([0], 'a' as never))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => x.set([0], 0, { acumulate: true } as never))).toBe('ERR_TENSOR_ARGUMENT');
    expect(
      codeOf(() =>
        ones([1])
          .expand([3])
          .set([ints([0])], 2),
      ),
    ).toBe('ERR_TENSOR_SHAPE');
    expect(x.toArray()).toEqual(ones([2, 3]).toArray());
    const leaf = ones([2]);
    leaf.requiresGrad = true;
    expect(codeOf(() => leaf.set([ints([0])], 2))).toBe('ERR_TENSOR_AUTOGRAD');
    noGrad(() => leaf.set([ints([0])], 2));
    expect(leaf.toArray()).toEqual([2, 1]);
  });

  test('backward refuses a saved value that set() has changed since', () => {
    const x = leaf64([3]);
    const y = x.mul(1);
    const z = y.square().sum();
    noGrad(() => y.set([ints([0])], 5));
    expect(codeOf(() => z.backward())).toBe('ERR_TENSOR_AUTOGRAD');
  });

  test('indexPut has gradients for the tensor and for the values', () => {
    gradCheck64((x, v) => indexPut(x!, [ints([2, 0])], v!.square()).square(), [leaf64([3, 2]), leaf64([2])]);
    gradCheck64(
      (x, v) => x!.indexPut([ints([1, 1]), ':'], v!, { accumulate: true }).square(),
      [leaf64([3, 2]), leaf64([2, 2])],
    );
    gradCheck64((x) => x!.indexPut([bools([1, 0, 1])], 4).square(), [leaf64([3, 2])]);
    gradCheck64((v) => zeros([2, 3], { dtype: 'float64' }).indexPut([1], v!).square(), [leaf64([3])]);
  });

  test('a range may change before backward', () => {
    const x = leaf64([3]);
    const range: [number, number] = [0, 1];
    const out = x.indexPut([range], 9);
    [range[0], range[1]] = [1, 3];
    out.sum().backward();
    expect(x.grad!.toArray()).toEqual([0, 1, 1]);
  });

  test('a call that throws leaves no tensor behind, and names itself', () => {
    trackLeaks(true);
    try {
      const [x, bad] = [arange(6).reshape([3, 2]), ints([9])];
      const before = leakReport().length;
      expect(() => x.indexPut([bad], 1)).toThrow(/^indexPut: index 9/);
      expect(() => leaf64([3]).indexPut([bad], 1)).toThrow(/^indexPut: index 9/);
      expect(() => x.t().gather(0, ints([9], [1, 1]))).toThrow(/gather/);
      expect(() => x.scatterAdd(0, ints([9, 9], [1, 2]), ones([2, 1]).t())).toThrow(/scatterAdd/);
      expect(leakReport().length - before).toBeLessThanOrEqual(5); // the operands of these calls
    } finally {
      trackLeaks(false);
    }
  });

  test('indexPut may dispose of its indices before backward', () => {
    const x = leaf64([3]);
    const out = scope(() =>
      x
        .indexPut([ints([1])], 0)
        .square()
        .sum(),
    );
    out.backward();
    expect(x.grad!.at(1).item()).toBe(0);
    expect(x.grad!.at(0).item()).toBeCloseTo(2 * x.at(0).item());
  });
});

describe('scatter and its reductions', () => {
  test('replaces, and gives gradients to what is left and what is new', () => {
    const index = ints([2, 0], [1, 2]);
    gradCheck64((x, y) => x!.scatter(1, index, y!).square(), [leaf64([2, 3]), leaf64([2, 2])]);
    gradCheck64((x) => x!.scatter(0, index.t().narrow(0, 1, 1), 3).square(), [leaf64([2, 3])]);
    expect(
      zeros([3])
        .scatter(0, ints([1, 1]), tensor([4, 5]))
        .toArray(),
    ).toEqual([0, 5, 0]);
  });

  test.each(['sum', 'prod', 'mean', 'amax', 'amin'] as const)('%s has the gradient of float64', (reduce) => {
    const index = ints([0, 2, 0, 1, 1, 1], [2, 3]);
    for (const includeSelf of [true, false]) {
      gradCheck64(
        (x, y) => x!.scatterReduce(1, index, y!, reduce, { includeSelf }).square(),
        [leaf64([2, 4]), leaf64([2, 3], 3)],
      );
    }
  });

  test('the gradient of a product with one zero, or two, is that of the others', () => {
    const x = tensor([2, 3], { requiresGrad: true });
    const y = tensor([0, 5, 0, 0], { requiresGrad: true });
    x.scatterReduce(0, ints([0, 0, 1, 1]), y, 'prod')
      .sum()
      .backward();
    expect(x.grad!.toArray()).toEqual([0, 0]);
    expect(y.grad!.toArray()).toEqual([10, 0, 0, 0]);
  });

  test('means of 16-bit floats and of large integers do not lose small parts', () => {
    const many = zeros([1000], { dtype: 'int64' });
    for (const dtype of ['bfloat16', 'float16'] as const) {
      const x = zeros([1], { dtype }).scatterReduce(0, many, ones([1000], { dtype }), 'mean', {
        includeSelf: false,
      });
      expect(x.toArray()).toEqual([1]);
    }
    const large = tensor([2n ** 62n + 1n]);
    expect(large.scatterReduce(0, ints([0]), large, 'mean', { includeSelf: false }).dataSync()[0]).toBe(
      2n ** 62n + 1n,
    );
    expect(
      tensor([-3n])
        .scatterReduce(0, ints([0]), tensor([-4n]), 'mean')
        .item(),
    ).toBe(-4);
  });

  test('NaN is an extreme, and gets the gradient', () => {
    const x = tensor([NaN, 1], { requiresGrad: true });
    const y = tensor([1, 2], { requiresGrad: true });
    x.scatterReduce(0, ints([0, 1]), y, 'amax')
      .sum()
      .backward();
    expect(x.grad!.toArray()).toEqual([1, 0]);
    expect(y.grad!.toArray()).toEqual([0, 1]);
  });

  test('refuses unknown reductions and options, and means of bool', () => {
    const [x, i] = [zeros([3]), ints([0])];
    expect(() => x.scatterReduce(0, i, ones([1]), 'max' as never)).toThrow(/'amax'/);
    expect(() => x.scatterReduce(0, i, ones([1]), 'sum', { include_self: false } as never)).toThrow(
      /includeSelf/,
    );
    expect(codeOf(() => bools([1]).scatterReduce(0, i, bools([1]), 'mean'))).toBe('ERR_TENSOR_DTYPE');
    expect(codeOf(() => x.scatterReduce(0, ints([3]), ones([1]), 'amax'))).toBe('ERR_TENSOR_ARGUMENT');
  });
});

describe('indexAdd, indexCopy, indexFill, take, takeAlongDim', () => {
  test('have the gradients of float64', () => {
    const index = ints([2, 0]);
    gradCheck64((x, y) => x!.indexAdd(1, index, y!, { alpha: 3 }).square(), [leaf64([2, 3]), leaf64([2, 2])]);
    gradCheck64((x, y) => x!.indexCopy(-1, index, y!).square(), [leaf64([2, 3]), leaf64([2, 2])]);
    gradCheck64((x) => x!.indexFill(1, index, 4).square(), [leaf64([2, 3])]);
    gradCheck64((x) => take(x!.t(), ints([5, -1, 0])).square(), [leaf64([2, 3])]);
    gradCheck64((x) => x!.takeAlongDim(ints([2, 0], [1, 2]), 1).square(), [leaf64([2, 3])]);
  });

  test('takeAlongDim sorts by the indices of sort', () => {
    const x = tensor([[3, 1, 2], [0, 5, 4]]); // biome-ignore format: rows
    const { indices, values } = x.sort(1);
    expect(x.takeAlongDim(indices, 1).toArray()).toEqual(values.toArray());
  });
});

describe('masks', () => {
  test('maskedSelect broadcasts, nonzero and where give positions', () => {
    const x = fromHost(Float32Array.of(0, 2, 0, -1, NaN, 0), [2, 3]);
    expect(nonzero(x).toArray()).toEqual([[0, 1], [1, 0], [1, 1]]); // biome-ignore format: rows
    const [rows, columns] = where(x.ne(0));
    expect(x.at(rows!, columns!).toArray()).toEqual([2, -1, NaN]);
    expect(maskedSelect(x, bools([0, 1, 0])).toArray()).toEqual([2, NaN]);
    expect(codeOf(() => maskedSelect(x, x))).toBe('ERR_TENSOR_DTYPE');
    expect(nonzero(tensor(3)).shape).toEqual([1, 0]);
    expect(where(tensor(3)).map((each) => each.toArray())).toEqual([[0]]);
    gradCheck64((y) => maskedSelect(y!, bools([1, 0, 1])).square(), [leaf64([2, 3])]);
  });
});
