// Wrong calls and edge cases: each must give a proper error or PyTorch's result.
import { describe, expect, test } from 'vitest';
import {
  add,
  any,
  arange,
  cat,
  crossEntropy,
  embedding,
  fill_,
  full,
  gather,
  leakyRelu,
  linear,
  matmul,
  nllLoss,
  ones,
  relu,
  reshape,
  sum,
  type Tensor,
  tensor,
  zeros,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';

describe('in place', () => {
  test.each([5, 5000])('a source that overlaps is read before it is overwritten, %d elements', (count) => {
    const values = Array.from({ length: count }, (_, i) => i);
    const later = [1, count] as const;
    const earlier = [0, count - 1] as const;
    const moved = arange(count);
    moved.at(later).copy_(moved.at(earlier));
    expect(moved.toArray()).toEqual([0, ...values.slice(0, -1)]);
    const summed = arange(count);
    summed.at(later).add_(summed.at(earlier));
    expect(summed.toArray()).toEqual(values.map((i) => (i === 0 ? 0 : 2 * i - 1)));
  });

  test('a tensor and its own transpose', () => {
    const a = arange(4).reshape([2, 2]);
    a.add_(a.t());
    expect(a.toArray()).toEqual([
      [0, 3],
      [3, 6],
    ]);
  });

  test('elements that share memory are not written one by one', () => {
    expect(() => zeros([1]).expand([3]).add_(1)).toThrow(
      'add_: elements of the tensor [3] share memory, as those that expand() made',
    );
    expect(zeros([1, 2]).expand([1, 2]).add_(1).toArray()).toEqual([[1, 1]]);
  });

  test('a fraction does not vanish in an integer', () => {
    const a = tensor([1, 2], { dtype: 'int32' });
    expect(() => a.add_(0.5)).toThrow('add_: the result is float32, and the tensor is int32.');
    expect(codeOf(() => a.div_(2))).toBe('ERR_TENSOR_DTYPE');
    expect(a.add_(1).toArray()).toEqual([2, 3]);
  });
});

describe('an operand that is neither a tensor nor a number', () => {
  test.each([
    ['undefined', undefined],
    ['null', null],
    ['string', 'x'],
    ['an array', [1, 2]],
    ['bigint', 1n],
  ])('%s is named', (name, value) => {
    const wrong = value as unknown as Tensor;
    const a = ones([2]);
    for (const call of [() => add(a, wrong), () => add(wrong, a), () => a.eq(wrong)])
      expect(call).toThrow(`expected a tensor or a number, got ${name}.`);
    expect(() => matmul(wrong, a)).toThrow('matmul: expected a tensor');
  });

  test('shapes and values of other kinds', () => {
    expect(() => zeros(3 as never)).toThrow('expected an array of sizes that are integers ≥ 0, got 3');
    expect(() => full([1], '1' as never)).toThrow("full: value: expected a number, got '1'");
  });
});

describe('a wrong index', () => {
  const a = arange(6).reshape([2, 3]);
  const anything: readonly [name: string, value: unknown][] = [
    ...[true, false, '1', 'x', 1.5, NaN, Infinity, 1n, {}, undefined].map((value): [string, unknown] => [
      typeof value === 'object' ? 'an object' : `${value}`,
      value,
    ]),
    ['a function', () => 0],
  ];

  test.each(anything)('%s is refused by at()', (_, value) => {
    for (const indices of [[value], [0, value], ['...', value]] as never[][])
      expect(() => a.at(...indices)).toThrow(
        /^at: expected an integer, a range \[start, end, step\], ':', '...', null, or a tensor of positions or bool, got /,
      );
  });

  test.each([
    ['of floats', tensor(1)],
    ['of floats with dimensions', tensor([1])],
    ['of uint8', tensor([1], { dtype: 'uint8' })],
  ])('a tensor %s is refused', (_, index) => {
    for (const indices of [[index], [0, index], ['...', index]] as never[][])
      expect(() => a.at(...indices)).toThrow(/^at: expected indices of int32 or int64, got /);
  });

  test.each([[[]], [[1, 2, 3, 4]], [['0', '1']], [[0.5]], [[0, NaN]], [[true]], [[[0]]], [[0, 1, 0.5]]])(
    'a range %j is refused',
    (range) => {
      expect(() => a.at(range as never)).toThrow('at: expected a range [start, end, step] of integers');
    },
  );

  const calls: readonly [string, (x: Tensor, value: never) => unknown][] = [
    ['select', (x, value) => x.select(0, value)],
    ['narrow', (x, value) => x.narrow(0, value, 1)],
    ['narrow', (x, value) => x.narrow(0, 0, value)],
    ...['select', 'narrow', 'cumsum', 'unbind', 'unsqueeze', 'squeeze'].map(
      (name): [string, (x: Tensor, value: never) => unknown] => [
        name,
        (x, value) => (x as never as Record<string, (...args: unknown[]) => unknown>)[name]!(value, 0, 1),
      ],
    ),
    ['logSoftmax', (x, value) => x.logSoftmax(value)],
    ['argmax', (x, value) => x.argmax(value)],
    ['transpose', (x, value) => x.transpose(0, value)],
    ['flatten', (x, value) => x.flatten(value)],
    ['permute', (x, value) => x.permute([0, value])],
    ['flip', (x, value) => x.flip([value])],
    ['split', (x, value) => x.split(1, value)],
    ['chunk', (x, value) => x.chunk(2, value)],
    ['unflatten', (x, value) => x.unflatten(value, [1])],
    ['gather', (x, value) => x.gather(value, tensor([[0n]]))],
    ['indexSelect', (x, value) => x.indexSelect(value, tensor([0n]))],
    ['tril', (x, value) => x.tril(value)],
    ['cat', (x, value) => cat([x, x], value)],
  ];
  test.each(calls)('%s refuses all but integers', (name, call) => {
    const values = ['0', true, null, 0.5, NaN, {}, [], 1n, tensor(0)] as never[];
    for (const value of values) {
      // As in PyTorch, squeeze takes an empty list of dimensions.
      if (name === 'squeeze' && Array.isArray(value)) continue;
      expect(() => call(a, value)).toThrow(new RegExp(`^${name}: expected .*integer.*, got `));
    }
  });

  const shapes: readonly [string, (x: Tensor, value: never) => unknown][] = [
    ['reshape', (x, value) => x.reshape(value)],
    ['view', (x, value) => x.view(value)],
    ['expand', (x, value) => x.expand(value)],
    ['permute', (x, value) => x.permute(value)],
    ['unflatten', (x, value) => x.unflatten(0, value)],
    ['split', (x, value) => x.split(value)],
    ['repeat', (x, value) => x.repeat(value)],
  ];
  test.each(shapes)('%s refuses all but arrays of integers', (_, call) => {
    for (const value of ['6', true, null, {}, tensor([6]), ['6'], [true], [null]] as never[])
      expect(['ERR_TENSOR_ARGUMENT', 'ERR_TENSOR_SHAPE']).toContain(codeOf(() => call(a, value)));
  });

  test('a dimension that is named twice, and a range of dimensions whose end comes first, are refused', () => {
    expect(() => a.flip([0, -2])).toThrow('flip: dimension -2 is named more than once');
    expect(() => a.flatten(1, 0)).toThrow('flatten: startDim 1 comes after endDim 0. Swap them.');
  });

  test('an argument that is no tensor is refused', () => {
    const wrong = [1, 2] as never;
    const named: readonly [string, () => unknown][] = [
      ['sum', () => sum(wrong)],
      ['any', () => any(1.5 as never)],
      ['relu', () => relu(wrong)],
      ['reshape', () => reshape(wrong, [2])],
      ['gather', () => gather(a, 0, wrong)],
      ['embedding', () => embedding(wrong, a)],
      ['crossEntropy', () => crossEntropy(a, wrong)],
      ['fill_', () => fill_(wrong, 1)],
    ];
    for (const [name, call] of named) expect(call).toThrow(new RegExp(`^${name}: expected a tensor, got `));
    expect(() => cat(a as never)).toThrow('cat: expected an array of tensors, got a tensor.');
    expect(() => leakyRelu(a, '0.1' as never)).toThrow(
      "leakyRelu: expected slope to be a number, got the string '0.1'.",
    );
  });
});

describe('at the edge', () => {
  test('a tensor that is larger than memory is refused with its size', () => {
    expect(() => zeros([2 ** 45])).toThrow(
      'tensor: no memory for 35184372088832 elements of float32 on the host',
    );
    expect(
      codeOf(() =>
        ones([1])
          .expand([2 ** 45])
          .clone(),
      ),
    ).toBe('ERR_TENSOR_MEMORY');
  });

  test('a tensor without dimensions is reduced over its only element', () => {
    const a = tensor(5);
    expect([a.sum(0), a.mean(-1), a.max([0])].map((each) => each.item())).toEqual([5, 5, 5]);
    expect(() => a.sum(1)).toThrow('sum: dimension 1 of a tensor without dimensions');
    expect(() => a.narrow(0, 0, 1)).toThrow('Use unsqueeze(0) first');
  });

  test('products of nothing are zeros, and layers over nothing have shapes', () => {
    expect(matmul(zeros([2, 0]), zeros([0, 2])).toArray()).toEqual([
      [0, 0],
      [0, 0],
    ]);
    expect(linear(zeros([2, 0]), zeros([3, 0]), ones([3])).toArray()).toEqual([
      [1, 1, 1],
      [1, 1, 1],
    ]);
    expect(linear(zeros([0, 3]), zeros([2, 3])).shape).toEqual([0, 2]);
    expect(add(zeros([0, 1]), zeros([1, 5])).shape).toEqual([0, 5]);
  });
});

describe('ignored labels', () => {
  const labels = [2, -100, 0, 1];

  test.each(['int32', 'int64'] as const)('count nothing, %s', (dtype) => {
    const x = leaf64([4, 3]);
    const ignoring = tensor(labels, { dtype });
    const kept = x.detach().indexSelect(0, tensor([0n, 2n, 3n]));
    const others = tensor([2, 0, 1], { dtype });
    for (const reduction of ['mean', 'sum'] as const) {
      const whole = crossEntropy(x, ignoring, { reduction });
      expect(whole.item()).toBeCloseTo(crossEntropy(kept, others, { reduction }).item(), 12);
    }
    for (const reduction of ['mean', 'sum', 'none'] as const) {
      gradCheck64((a) => crossEntropy(a!, ignoring, { reduction }), [x]);
      gradCheck64((a) => nllLoss(a!, tensor([2, 1, 0, 1], { dtype }), { reduction, ignoreIndex: 1 }), [x]);
    }
  });

  test('may be unreachable, or all there are', () => {
    const x = tensor([
      [-Infinity, 0],
      [0, 0],
    ]);
    expect(nllLoss(x, tensor([-100, 1], { dtype: 'int32' })).item()).toBe(0);
    expect(crossEntropy(x, tensor([-100, -100], { dtype: 'int32' })).item()).toBeNaN();
    expect(() => crossEntropy(x, tensor([-100, 2], { dtype: 'int64' }))).toThrow(
      'crossEntropy: label 2 in row 1 is out of range; expected 0 to 1 for 2 classes',
    );
    expect(codeOf(() => crossEntropy(x, tensor([-(2 ** 32) - 100, 0], { dtype: 'int64' })))).toBe(
      'ERR_TENSOR_LABEL',
    );
  });
});
