// Tests functions that make tensors, and reading elements back.
import { describe, expect, test } from 'vitest';
import {
  arange,
  eye,
  fromHost,
  full,
  ones,
  onesLike,
  rand,
  type Tensor,
  tensor,
  zeros,
  zerosLike,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';

const facts = ({ dtype, shape, requiresGrad }: Tensor): unknown[] => [dtype, shape, requiresGrad];

describe('tensor', () => {
  test('refuses fractions beside a bigint, and a dtype as device', () => {
    expect(() => tensor([1.5, 2n])).toThrow("expected integers beside a bigint, or dtype: 'int64'");
    expect(tensor([1, 2n]).dtype).toBe('int64');
    expect(tensor([1.5, 2n], { dtype: 'float32' }).toArray()).toEqual([1.5, 2]);
    expect(tensor([1.5, 2n], { dtype: 'int64' }).toArray()).toEqual([1, 2]);
    expect(() => tensor([1], { device: 'float64' as 'cpu' })).toThrow("device: expected 'cpu', 'cuda' or");
  });

  test('takes numbers and nested arrays', () => {
    expect(tensor(5).toArray()).toBe(5);
    expect(
      tensor([
        [1, 2],
        [3, 4],
      ]).toArray(),
    ).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(facts(tensor([[[]], [[]]]))).toEqual(['float32', [2, 1, 0], false]);
    expect(facts(tensor([1n, -2n]))).toEqual(['int64', [2], false]);
    expect(facts(tensor([1, 2], { requiresGrad: true }))).toEqual(['float32', [2], true]);
  });

  test.each([
    [Float64Array.of(1.5, -2), 'float64', [1.5, -2]],
    [Float32Array.of(1.5, -2), 'float32', [1.5, -2]],
    [Uint8Array.of(1, 255), 'uint8', [1, 255]],
    [Int16Array.of(1, -2), 'int32', [1, -2]],
    [Int32Array.of(1, -2), 'int32', [1, -2]],
    [Uint32Array.of(1, 4e9), 'int64', [1, 4e9]],
    [BigInt64Array.of(1n, -2n), 'int64', [1, -2]],
  ])('copies %o as %s', (data, dtype, want) => {
    const a = tensor(data);
    data.reverse();
    expect(a.dtype).toBe(dtype);
    expect(a.toArray()).toEqual(want);
  });

  test('converts to the dtype and shape that are asked for', () => {
    expect(tensor([1.7, -1.7], { dtype: 'int64' }).toArray()).toEqual([1, -1]);
    expect(tensor([1.7, -1.7], { dtype: 'int32' }).toArray()).toEqual([1, -1]);
    expect(tensor([1n, 2n], { dtype: 'float32', shape: [2, 1] }).toArray()).toEqual([[1], [2]]);
  });

  test('refuses an array that contains itself, and more nested arrays than a tensor has dimensions', () => {
    const endless: unknown[] = [];
    endless.push(endless);
    expect(() => tensor(endless as number[])).toThrow('tensor: data: expected at most 16 nested arrays');
    const nested = (depth: number): number[] => {
      let data: unknown = 1;
      for (let i = 0; i < depth; i++) data = [data];
      return data as number[];
    };
    expect(tensor(nested(16)).rank).toBe(16);
    expect(codeOf(() => tensor(nested(17)))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('refuses ragged arrays, other data and counts that do not fit', () => {
    expect(() => tensor([[1, 2], [3]])).toThrow('tensor: nested arrays differ in shape: [2] beside [1].');
    expect(codeOf(() => tensor([1, [2]] as never))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => tensor('12' as never))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => tensor([1, 2], { shape: [3] }))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => zeros([-1]))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => tensor([1], { dtype: 'float8' as never }))).toBe('ERR_TENSOR_DTYPE');
  });
});

describe('fromHost', () => {
  test('refuses memory that can be taken away, and arrays whose memory was transferred', () => {
    // @ts-expect-error The compiler's library does not know resizable buffers.
    const resizable = new Float32Array(new ArrayBuffer(16, { maxByteLength: 64 }));
    expect(() => fromHost(resizable)).toThrow('fromHost: the array is in a resizable ArrayBuffer');
    expect(tensor(resizable).shape).toEqual([4]);
    const sent = Float32Array.of(1, 2);
    structuredClone(sent, { transfer: [sent.buffer] });
    for (const make of [() => fromHost(sent), () => tensor(sent)])
      expect(make).toThrow('the memory of the array was transferred');
    expect(fromHost(new Float32Array(0)).shape).toEqual([0]);
  });

  test('shares memory with the array in both directions', () => {
    const array = Float32Array.of(1, 2, 3, 4);
    const a = fromHost(array, [2, 2]);
    array[0] = 10;
    a.dataSync()[3] = 40;
    expect(a.toArray()).toEqual([
      [10, 2],
      [3, 40],
    ]);
    expect([...array]).toEqual([10, 2, 3, 40]);
    expect(codeOf(() => fromHost(array, [3]))).toBe('ERR_TENSOR_SHAPE');
    expect(() => fromHost(new Int16Array(4) as never)).toThrow('fromHost: Int16Array does not hold');
    expect(() => fromHost([1, 2] as never)).toThrow(
      'fromHost: a plain array does not hold elements of a dtype. Use tensor(), which copies and converts.',
    );
    expect(() => fromHost(null as never)).toThrow('fromHost: expected a typed array, got null.');
    for (const [data, shown] of [
      [null, 'null'],
      ['x', "'x'"],
      [Promise.resolve(1), 'a promise, which needs an await'],
    ])
      expect(() => tensor(data as never)).toThrow(
        `nested arrays of these or a typed array, got ${shown as string}.`,
      );
    expect(codeOf(() => fromHost(array, [4], { dtype: 'float64' }))).toBe('ERR_TENSOR_ARGUMENT');
  });
});

test('full, zeros, ones, like and arange', () => {
  expect(full([2], 7, { dtype: 'int64' }).toArray()).toEqual([7, 7]);
  expect(zeros([1, 2]).toArray()).toEqual([[0, 0]]);
  expect(facts(ones([], { requiresGrad: true }))).toEqual(['float32', [], true]);
  const like = zeros([2], { dtype: 'int32' });
  expect(facts(zerosLike(like))).toEqual(['int32', [2], false]);
  expect(onesLike(like, { dtype: 'float32' }).toArray()).toEqual([1, 1]);
  expect(arange(3).toArray()).toEqual([0, 1, 2]);
  expect(arange(1, 2, 0.25).toArray()).toEqual([1, 1.25, 1.5, 1.75]);
  expect(arange(3, 0, -2, { dtype: 'int32' }).toArray()).toEqual([3, 1]);
  expect(arange(3, 3).shape).toEqual([0]);
  expect(codeOf(() => arange(3, 1))).toBe('ERR_TENSOR_ARGUMENT');
  expect(codeOf(() => arange(-1))).toBe('ERR_TENSOR_ARGUMENT');
  expect(codeOf(() => arange(0, 5, 0))).toBe('ERR_TENSOR_ARGUMENT');
});

test('options of arange and eye may follow any number', () => {
  const options = { dtype: 'int64' } as const;
  for (const made of [
    arange(2, options),
    arange(0, 2, options),
    arange(0, 2, 1, options),
    arange(2, undefined, 1, options),
  ]) {
    expect(facts(made)).toEqual(['int64', [2], false]);
    expect(made.toArray()).toEqual([0, 1]);
  }
  for (const made of [eye(2, options), eye(2, 2, options), eye(2, undefined, options)]) {
    expect(facts(made)).toEqual(['int64', [2, 2], false]);
    expect(made.toArray()).toEqual([
      [1, 0],
      [0, 1],
    ]);
  }
  // @ts-expect-error Options come last.
  const early = () => arange(0, options, 1);
  // @ts-expect-error The first argument is a number.
  const first = () => arange(options);
  for (const call of [early, first, () => arange(2, null!), () => eye(2, null!)])
    expect(codeOf(call)).toBe('ERR_TENSOR_ARGUMENT');
});

test('item and toArray read int64 as numbers, and refuse to lose digits', async () => {
  expect(tensor([2n ** 53n - 1n]).item()).toBe(2 ** 53 - 1);
  expect(codeOf(() => tensor([2n ** 53n]).item())).toBe('ERR_TENSOR_ARGUMENT');
  expect(codeOf(() => tensor([1, 2]).item())).toBe('ERR_TENSOR_SHAPE');
  expect(await tensor([2n ** 60n]).data()).toEqual(BigInt64Array.of(2n ** 60n));
});

test('a tensor offers its own memory through the buffer protocol', () => {
  const a = rand([2, 3]);
  const view = (a as unknown as Record<symbol, () => { host: Float32Array }>)[
    Symbol.for('ringwise.buffer')
  ]!();
  expect(view).toMatchObject({ dtype: 'float32', count: 6, device: { kind: 'cpu', index: 0 }, handle: null });
  view.host[5] = 77;
  expect(a.dataSync()[5]).toBe(77);
});
