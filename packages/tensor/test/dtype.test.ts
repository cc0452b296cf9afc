import { describe, expect, test } from 'vitest';
import { fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from '../src/half.ts';
import { type DType, fromHost, ones, promoteTypes, resultType, tensor, zeros } from '../src/index.ts';
import { codeOf } from './code-of.ts';
import { dtypes } from './kernels-oracle.ts';

describe('type promotion', () => {
  /** torch.promote_types, by rows and columns in this order. */
  const order: DType[] = ['bool', 'uint8', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64'];
  const short: Record<string, DType> = { b: 'bool', u: 'uint8', i: 'int32', l: 'int64' };
  Object.assign(short, { h: 'float16', B: 'bfloat16', f: 'float32', d: 'float64' });
  const table = [
    'builhBfd',
    'uuilhBfd',
    'iiilhBfd',
    'llllhBfd',
    'hhhhhffd',
    'BBBBfBfd',
    'fffffffd',
    'dddddddd',
  ];

  test('is that of torch.promote_types for every pair', () => {
    for (const [i, a] of order.entries()) {
      for (const [j, b] of order.entries()) expect(promoteTypes(a, b)).toBe(short[table[i]![j]!]);
    }
  });

  test('tensors with dimensions decide; those without, and numbers, only by a higher kind', () => {
    const vector = (dtype: DType) => zeros([2], { dtype });
    const scalar = (dtype: DType) => zeros([], { dtype });
    expect(resultType(vector('float16'), scalar('float64'))).toBe('float16');
    expect(resultType(vector('int32'), scalar('float64'))).toBe('float64');
    expect(resultType(vector('int32'), scalar('float16'))).toBe('float16');
    expect(resultType(vector('uint8'), scalar('int64'))).toBe('uint8');
    expect(resultType(vector('bool'), scalar('int64'))).toBe('int64');
    expect(resultType(vector('bool'), 2)).toBe('int64');
    expect(resultType(vector('bool'), 0.5)).toBe('float32');
    expect(resultType(vector('uint8'), 2)).toBe('uint8');
    expect(resultType(vector('int64'), 0.5)).toBe('float32');
    expect(resultType(vector('bfloat16'), 0.5)).toBe('bfloat16');
    expect(resultType(scalar('float16'), 0.5)).toBe('float16');
    expect(resultType(scalar('int32'), vector('float16'), 0.5)).toBe('float16');
    expect(resultType(2, 3)).toBe('int64');
  });

  test('holds for operations, without a copy of either operand', () => {
    for (const a of dtypes) {
      for (const b of dtypes) {
        const sum = tensor([1, 0], { dtype: a }).add(tensor([1, 1], { dtype: b }));
        expect(sum.dtype).toBe(promoteTypes(a, b));
        expect(sum.toArray()).toEqual(sum.dtype === 'bool' ? [1, 1] : [2, 1]);
      }
    }
  });
});

describe('every dtype', () => {
  test.each(dtypes)('%s is created, read, printed, converted and reduced', (dtype) => {
    const a = tensor([[0, 1]], { dtype });
    expect(a.dtype).toBe(dtype);
    expect(a.toArray()).toEqual([[0, 1]]);
    expect(a.at(0, 1).item()).toBe(1);
    expect(String(a)).toMatch(/^tensor\(\[\[/);
    for (const to of dtypes) expect(a.to(to).toArray()).toEqual([[0, 1]]);
    expect(a.sum().item()).toBe(1);
    expect(ones([3], { dtype }).toArray()).toEqual([1, 1, 1]);
    expect(a.eq(a).dtype).toBe('bool');
  });

  test('prints as PyTorch does, with the dtype where the digits do not tell it', () => {
    expect(String(tensor([true, false]))).toBe('tensor([ true, false])');
    expect(String(tensor([1, 200], { dtype: 'uint8' }))).toBe('tensor([  1, 200], dtype=uint8)');
    expect(String(tensor([1.5, 2], { dtype: 'float64' }))).toBe('tensor([1.5000, 2.0000], dtype=float64)');
    expect(String(tensor([1, 2], { dtype: 'bfloat16' }))).toBe('tensor([1., 2.], dtype=bfloat16)');
    expect(String(tensor([1n]))).toBe('tensor([1])');
    expect(
      String(
        tensor([
          [1, 2, 3],
          [4, 5, 6],
        ]).t(),
      ),
    ).toBe('tensor([[1., 4.],\n        [2., 5.],\n        [3., 6.]])');
  });

  test('only floating tensors require gradients, and theirs have their dtype', () => {
    expect(codeOf(() => zeros([1], { dtype: 'bool', requiresGrad: true }))).toBe('ERR_TENSOR_DTYPE');
    for (const dtype of ['float64', 'float16', 'bfloat16'] as const) {
      const x = tensor([1, 2], { dtype, requiresGrad: true });
      const wide = tensor([3, 4], { requiresGrad: true });
      x.mul(wide).sum().backward();
      expect([x.grad!.dtype, wide.grad!.dtype]).toEqual([dtype, 'float32']);
      expect(x.grad!.toArray()).toEqual([3, 4]);
      expect(wide.grad!.toArray()).toEqual([1, 2]);
    }
  });

  test('fromHost takes the bits of bfloat16 and bool where it is told', () => {
    const bits = Uint16Array.of(0x3f80, 0xc000);
    expect(fromHost(bits, [2], { dtype: 'bfloat16' }).toArray()).toEqual([1, -2]);
    expect(fromHost(bits).toArray()).toEqual([1.875, -2]);
    expect(fromHost(Uint8Array.of(1, 0), [2], { dtype: 'bool' }).dtype).toBe('bool');
  });
});

describe('float16 and bfloat16', () => {
  test('known patterns in both directions', () => {
    const halves: [number, number][] = [
      [0, 0],
      [1, 0x3c00],
      [-2, 0xc000],
      [65504, 0x7bff],
      [2 ** -24, 1],
      [2 ** -14, 0x0400],
      [1 / 3, 0x3555],
      [Infinity, 0x7c00],
    ];
    for (const [value, bits] of halves) expect(toFloat16(value)).toBe(bits);
    for (const [value, bits] of halves) expect(fromFloat16(bits)).toBeCloseTo(value, 3);
    expect([1, -2, 3.140625, Infinity].map(toBfloat16)).toEqual([0x3f80, 0xc000, 0x4049, 0x7f80]);
    expect(fromBfloat16(0x4049)).toBe(3.140625);
    expect([toFloat16(NaN), toBfloat16(NaN)].map((bits) => bits & 0x7fff)).toEqual([0x7e00, 0x7fc0]);
  });

  test('every pattern survives the way to a number and back', () => {
    for (let bits = 0; bits < 0x10000; bits++) {
      if (!Number.isNaN(fromFloat16(bits))) expect(toFloat16(fromFloat16(bits))).toBe(bits);
      if (!Number.isNaN(fromBfloat16(bits))) expect(toBfloat16(fromBfloat16(bits))).toBe(bits);
    }
  });

  test('round to nearest, halves to the even pattern, and overflow to infinity', () => {
    expect([1 + 2 ** -11, 1 + 3 * 2 ** -11].map(toFloat16)).toEqual([0x3c00, 0x3c02]);
    expect([1 + 2 ** -8, 1 + 3 * 2 ** -8].map(toBfloat16)).toEqual([0x3f80, 0x3f82]);
    expect([65519, 65520].map(toFloat16)).toEqual([0x7bff, 0x7c00]);
    expect([2 ** -25, 3 * 2 ** -25].map(toFloat16)).toEqual([0, 2]);
  });
});
