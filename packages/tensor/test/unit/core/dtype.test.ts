// Tests dtypes: promotion, the dtypes of results, creation, printing, and the range of numbers.
import { describe, expect, test } from 'vitest';
import {
  type DType,
  fromHost,
  full,
  ones,
  promoteTypes,
  resultType,
  type Tensor,
  tensor,
  zeros,
} from '../../../src/index.ts';
import * as ops from '../../../src/ops/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { dtypes } from '../../support/kernels-oracle.ts';

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

  test('refuses operands and names of another kind', () => {
    for (const operand of [undefined, null, {}, 'float32', 1n])
      expect(() => resultType(zeros([1]), operand as never)).toThrow(
        'resultType: expected tensors and numbers, got ',
      );
    for (const name of ['float', undefined, Symbol('float32')])
      expect(codeOf(() => promoteTypes(name as never, 'float32'))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('holds for operations', () => {
    for (const a of dtypes) {
      for (const b of dtypes) {
        const sum = tensor([1, 0], { dtype: a }).add(tensor([1, 1], { dtype: b }));
        expect(sum.dtype).toBe(promoteTypes(a, b));
        expect(sum.toArray()).toEqual(sum.dtype === 'bool' ? [1, 1] : [2, 1]);
      }
    }
  });
});

describe('the dtype of results is PyTorch’s', () => {
  const order: DType[] = ['bool', 'uint8', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64'];
  const letters = [...'builhBfd'];
  /** Returns a letter for the dtype of the result of `op`, or '-' if it throws ERR_TENSOR_DTYPE. */
  function letterOf(op: () => Tensor): string {
    try {
      return letters[order.indexOf(op().dtype)]!;
    } catch (error) {
      expect(error).toMatchObject({ code: 'ERR_TENSOR_DTYPE' });
      return '-';
    }
  }
  const ofType = (dtype: DType): Tensor => tensor([1, 0], { dtype });
  const row = (op: (x: Tensor) => Tensor): string =>
    order.map((dtype) => letterOf(() => op(ofType(dtype)))).join('');

  const asFloat = 'ffffhBfd';
  const ofNumbers = '-uilhBfd';
  const ofFloats = '----hBfd';
  const ofAll = 'builhBfd';
  const counted = 'llllhBfd';
  const functions: Readonly<Record<string, string>> = {
    ...{ exp: asFloat, log: asFloat, sqrt: asFloat, rsqrt: asFloat, sin: asFloat, cos: asFloat },
    ...{ tanh: asFloat, sigmoid: asFloat, erf: asFloat, square: 'luilhBfd', sign: ofAll },
    ...{ log1p: asFloat, tan: asFloat, erfc: asFloat, reciprocal: asFloat, sinc: asFloat, frac: ofFloats },
    ...{ sgn: ofAll, nanToNum: ofAll, isnan: 'bbbbbbbb', signbit: 'bbbbbbbb', bitwiseNot: 'buil----' },
    ...{ neg: ofNumbers, abs: ofNumbers, relu: ofNumbers, floor: ofNumbers, ceil: ofNumbers },
    ...{ round: ofNumbers, trunc: ofNumbers, gelu: ofFloats, silu: ofFloats, softplus: ofFloats },
    ...{ elu: ofFloats, leakyRelu: ofFloats, softmax: ofFloats, logSoftmax: ofFloats },
    ...{ logicalNot: 'bbbbbbbb', sum: counted, prod: counted, mean: ofFloats, max: ofAll, min: ofAll },
    ...{ argmax: '-lllllll', argmin: '-lllllll', std: ofFloats, variance: ofFloats, norm: ofFloats },
  };
  test.each(Object.entries(functions))('%s', (name, want) => {
    expect(row((ops as unknown as Record<string, (x: Tensor) => Tensor>)[name]!)).toBe(want);
  });

  test('of operations along a dimension', () => {
    expect(row((x) => x.cumsum(0))).toBe(counted);
    expect(row((x) => x.sort(0).values)).toBe(ofAll);
    expect(row((x) => x.topk(1).values)).toBe(ofNumbers);
  });

  const pairs = (op: (a: Tensor, b: Tensor) => Tensor, b = [1, 1]): string[] =>
    order.map((left) =>
      order.map((dtype) => letterOf(() => op(ofType(left), tensor(b, { dtype })))).join(''),
    );
  const promoted = [
    'builhBfd',
    'uuilhBfd',
    'iiilhBfd',
    'llllhBfd',
    'hhhhhffd',
    'BBBBfBfd',
    'fffffffd',
    'dddddddd',
  ];
  const withoutBool = (rows: readonly string[]): string[] =>
    rows.map((each, i) => (i === 0 ? '--------' : `-${each.slice(1)}`));
  const ofFirst = (rows: string): string[] => [...rows].map((letter) => letter.repeat(8));

  test('of pairs', () => {
    for (const op of [ops.add, ops.mul, ops.maximum, ops.minimum, ops.clamp] as const)
      expect(pairs(op)).toEqual(promoted);
    expect(pairs(ops.sub)).toEqual(withoutBool(promoted));
    expect(pairs(ops.div)).toEqual(promoted.map((each, i) => (i < 4 ? asFloat : each)));
    expect(pairs(ops.pow)).toEqual(promoted.with(0, '-uilhBfd'));
    for (const op of [ops.eq, ops.lt, ops.logicalXor] as const)
      expect(pairs(op)).toEqual(ofFirst('bbbbbbbb'));
  });

  test('of pairs in place, which do not widen the kind', () => {
    const added = ['b-------', 'uuuu----', 'iiii----', 'llll----', ...ofFirst('hBfd')];
    expect(pairs(ops.add_)).toEqual(added);
    expect(pairs(ops.mul_)).toEqual(added);
    expect(pairs(ops.sub_)).toEqual(withoutBool(added));
    expect(pairs(ops.div_)).toEqual([...ofFirst('----'), ...ofFirst('hBfd')]);
    expect(pairs(ops.copy_)).toEqual(ofFirst(ofAll));
  });

  test('beside a number', () => {
    for (const op of [ops.add, ops.mul, ops.clamp, ops.pow] as const) {
      expect(row((x) => op(x, 2))).toBe('luilhBfd');
      expect(row((x) => op(x, 0.5))).toBe(asFloat);
    }
    expect(row((x) => ops.sub(2, x))).toBe(ofNumbers);
    expect(row((x) => ops.sub(x, 0.5))).toBe('-fffhBfd');
    expect(row((x) => ops.div(2, x))).toBe(asFloat);
    expect(row((x) => x.add_(2))).toBe(ofNumbers);
    expect(row((x) => x.mul_(0.5))).toBe(ofFloats);
    expect(row((x) => x.fill_(0.5))).toBe(ofAll);
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

  test('numbers that a dtype does not hold are refused, not wrapped around', () => {
    const wrong: [DType, number][] = [
      ['uint8', 300],
      ['uint8', -1],
      ['int32', 2 ** 31],
      ['int32', NaN],
      ['int64', 2 ** 63],
      ['int64', -Infinity],
    ];
    for (const [dtype, value] of wrong) {
      expect(() => tensor([0, value], { dtype })).toThrow(`tensor: ${value} does not fit into ${dtype}`);
      expect(() => full([2], value, { dtype })).toThrow(`full: ${value} does not fit into ${dtype}`);
      expect(() => zeros([2], { dtype }).fill_(value)).toThrow(`fill_: ${value} does not fit into ${dtype}`);
    }
    expect(() => tensor([2n ** 63n])).toThrow('tensor: 9223372036854775808 does not fit into int64');
    expect(tensor([2n ** 63n - 1n]).dataSync()).toEqual(BigInt64Array.of(2n ** 63n - 1n));
    expect(() => full([1], 1e5, { dtype: 'float16' })).toThrow('which holds -65504 to 65504');
    expect(full([1], 1.9, { dtype: 'uint8' }).item()).toBe(1);
    expect(full([1], NaN, { dtype: 'bool' }).item()).toBe(1);
    expect(full([1], -Infinity, { dtype: 'float16' }).item()).toBe(-Infinity);
    expect(tensor(Float32Array.of(300, -1), { dtype: 'uint8' }).toArray()).toEqual([44, 255]);
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
