// Elementwise functions beyond arithmetic: what they refuse, and what the generator of cases cannot tell.
import { describe, expect, test } from 'vitest';
import {
  addcdiv,
  addcmul,
  bitwiseAnd,
  bitwiseLeftShift,
  bitwiseNot,
  erfinv,
  floorDivide,
  fmod,
  frac,
  gcd,
  grad,
  heaviside,
  hypot,
  lcm,
  lerp,
  logaddexp,
  logit,
  noGrad,
  ones,
  remainder,
  sinc,
  type Tensor,
  tensor,
  xlogy,
  zeros,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';

const whole = tensor([7n, -7n]);
const flags = tensor([1, 0], { dtype: 'bool' });

describe('elementwise functions refuse', () => {
  test('dtypes that PyTorch refuses', () => {
    expect(() => bitwiseAnd(tensor([1.5]), 1)).toThrow(
      "bitwiseAnd: expected integers or bool, got float32. Use .to('int64').",
    );
    expect(() => bitwiseNot(tensor([1.5]))).toThrow('bitwiseNot: expected integers or bool, got float32.');
    for (const call of [
      () => bitwiseLeftShift(flags, flags),
      () => gcd(flags, flags),
      () => fmod(flags, flags),
    ])
      expect(codeOf(call)).toBe('ERR_TENSOR_DTYPE');
    expect(() => frac(whole)).toThrow('frac: expected a floating dtype, got int64.');
    expect(() => hypot(whole, 2)).toThrow('hypot: expected a floating dtype, got int64.');
    expect(() => addcdiv(ones([2]), whole, whole)).toThrow('addcdiv: expected a floating dtype, got int64.');
    expect(() => lerp(ones([2]), ones([2]).to('float64'), 0.5)).toThrow(
      'lerp: expected operands of one dtype, got float32 and float64. Use to().',
    );
    expect(codeOf(() => heaviside(ones([2]), whole))).toBe('ERR_TENSOR_DTYPE');
  });

  test('integers divided by 0, in a tensor too', () => {
    const message = "an integer is divided by 0. Use .to('float32') for NaN and infinities.";
    expect(() => remainder(whole, 0)).toThrow(`remainder: ${message}`);
    expect(() => floorDivide(whole, tensor([1n, 0n]))).toThrow(`floorDivide: ${message}`);
    expect(codeOf(() => fmod(whole, tensor(0n)))).toBe('ERR_TENSOR_ARGUMENT');
    expect(floorDivide(tensor([1, -1]), 0).toArray()).toEqual([Infinity, -Infinity]);
  });

  test('values of other kinds', () => {
    expect(() => xlogy(ones([2]), '1' as never)).toThrow('xlogy: expected a tensor or a number, got string.');
    expect(() => lerp(ones([2]), 2 as never, 0.5)).toThrow('lerp: expected end to be a tensor, got 2.');
    expect(() => logit(ones([2]), '1' as never)).toThrow(
      "logit: expected eps to be a number, got the string '1'.",
    );
    expect(() => addcmul(whole, whole, whole, { value: 0.5 })).toThrow(
      "addcmul: expected an integer as value for integers, got 0.5. Use .to('float32') on the tensors.",
    );
    expect(codeOf(() => logaddexp(ones([2]), ones([3])))).toBe('ERR_TENSOR_SHAPE');
  });

  test('backward of floorDivide and heaviside', () => {
    const x = tensor([1.5, -2], { requiresGrad: true });
    const message = 'has no gradient. Use detach() on its operands, or noGrad(), if none is meant.';
    expect(() => floorDivide(x, 2).sum().backward()).toThrow(`floorDivide: ${message}`);
    expect(() =>
      heaviside(x, ones([2]))
        .sum()
        .backward(),
    ).toThrow(`heaviside: ${message}`);
  });
});

describe('elementwise functions', () => {
  test('keep the digits of int64', () => {
    const large = tensor([9007199254740993n, -9007199254740993n]);
    const list = (x: Tensor): unknown[] => [...(x.dataSync() as BigInt64Array)];
    expect(list(floorDivide(large, 2))).toEqual([4503599627370496n, -4503599627370497n]);
    expect(list(remainder(large, 10))).toEqual([3n, 7n]);
    expect(list(bitwiseAnd(large, large))).toEqual(list(large));
    expect(list(gcd(large, tensor([3n])))).toEqual([3n, 3n]);
    expect(list(lcm(tensor([4n, 0n]), tensor([6n, 5n])))).toEqual([12n, 0n]);
  });

  test('erfinv is precise near its ends', () => {
    const x = tensor([1 - 2 ** -50, -1 + 2 ** -30, 1e-300], { dtype: 'float64' });
    const back = erfinv(x).toArray() as number[];
    expect(back[0]).toBeCloseTo(5.686128441310391, 12);
    expect(back[1]).toBeCloseTo(-4.328028275800946, 12);
    expect(back[2]! / 8.86226925452758e-301).toBeCloseTo(1, 12);
  });

  test('nanToNum takes the ends of the dtype', () => {
    const single = tensor([NaN, Infinity, -Infinity]).nanToNum().toArray();
    expect(single).toEqual([0, (2 - 2 ** -23) * 2 ** 127, -(2 - 2 ** -23) * 2 ** 127]);
    const x = tensor([NaN, Infinity, -Infinity], { dtype: 'float64' });
    expect(x.nanToNum().toArray()).toEqual([0, Number.MAX_VALUE, -Number.MAX_VALUE]);
  });

  test('gradients agree with differences of results', () => {
    const [a, b, c] = [leaf64([2, 3]), leaf64([3], 2), leaf64([2, 1], 3)];
    for (const fn of [logaddexp, hypot]) expect(() => gradCheck64((x, y) => fn(x, y!), [a, b])).not.toThrow();
    for (const fn of [lerp, addcmul])
      expect(() => gradCheck64((x, y, z) => fn(x, y!, z!), [a, b, c])).not.toThrow();
    expect(() => gradCheck64((x) => sinc(x), [a])).not.toThrow();
    expect(() =>
      gradCheck64((x, y, z) => addcdiv(x, y!, z!.square().add(1), { value: 2 }), [a, b, c]),
    ).not.toThrow();
  });
});

describe('in-place forms', () => {
  test('write into the tensor and all its views, and return it', () => {
    const x = tensor([
      [1, 4],
      [9, 16],
    ]);
    const column = x.at(':', 1);
    expect(column.sqrt_()).toBe(column);
    expect(x.toArray()).toEqual([
      [1, 2],
      [9, 4],
    ]);
    x.clamp_(2, 5).maskedFill_(x.eq(4), 0);
    expect(column.toArray()).toEqual([2, 0]);
  });

  test('read operands before they write', () => {
    const x = tensor([1, 2, 3, 4]).reshape([2, 2]);
    expect(x.pow_(x.t()).toArray()).toEqual([
      [1, 8],
      [9, 256],
    ]);
  });

  test('refuse what add_ refuses', () => {
    const leaf = tensor([1, 4], { requiresGrad: true });
    expect(() => leaf.exp_()).toThrow(
      'exp_: cannot change a tensor in place while operations on it are recorded.',
    );
    expect(() => tensor([1, 2]).atan2_(leaf)).toThrow('atan2_: cannot change a tensor in place');
    expect(noGrad(() => leaf.sqrt_()).toArray()).toEqual([1, 2]);
    expect(() => ones([1]).expand([3]).exp_()).toThrow('exp_: elements of the tensor [3] share memory');
    expect(() => whole.clone().exp_()).toThrow('exp_: the result is float32, and the tensor is int64.');
    expect(() => flags.clone().pow_(whole)).toThrow('pow_: the result is int64, and the tensor is bool.');
    expect(codeOf(() => ones([3]).hypot_(ones([2, 3])))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => tensor([1]).clamp_('1' as never))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('are seen by backward', () => {
    const leaf = tensor([1, 4], { requiresGrad: true });
    const out = leaf.exp();
    out.detach().neg_();
    expect(codeOf(() => out.sum().backward())).toBe('ERR_TENSOR_AUTOGRAD');
  });
});

test('logit limits elements as PyTorch does where its limits cross, and not with an eps below 0', () => {
  const x = tensor([0, 1, 0.5, -0.5, 1.5], { dtype: 'float64' });
  const at = 0.4054651081081642;
  const crossed = logit(x, 0.6).toArray() as number[];
  for (const [i, want] of [at, -at, at, at, -at].entries()) expect(crossed[i]).toBeCloseTo(want, 14);
  const y = tensor([0, 0.5, 1, 1.5], { requiresGrad: true });
  expect(logit(y, -1).toArray()).toEqual([-Infinity, 0, Infinity, NaN]);
  expect(grad(logit(y, -1).sum(), y)[0]!.toArray()).toEqual([Infinity, 4, Infinity, NaN]);
});

test('nanmean gives NaN to the elements of a row of NaN, and 0 to NaN beside numbers', () => {
  for (const keepDim of [false, true]) {
    const x = tensor(
      [
        [NaN, NaN],
        [1, NaN],
        [2, 4],
      ],
      { requiresGrad: true },
    );
    const means = x.nanmean(1, keepDim);
    expect([means.shape, means.reshape([3]).toArray()]).toEqual([keepDim ? [3, 1] : [3], [NaN, 1, 3]]);
    expect(grad(means.sum(), x)[0]!.toArray()).toEqual([
      [NaN, NaN],
      [1, 0],
      [0.5, 0.5],
    ]);
  }
  expect(zeros([0]).nanmean().item()).toBeNaN();
  expect(zeros([0, 2]).nanmean(0).toArray()).toEqual([NaN, NaN]);
});
