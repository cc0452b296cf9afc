// Cases of elementwise functions that are the same for every seed.
import { bool, type Cases, f32, i64, one, ramp, same, type Values } from './makers.ts';

const zeroTwice: Values = [0, 0];

const unaryOfIntegers = (op: string) => [
  one(op, (d) => [i64(d, [-2, 0, 3])]),
  one(op, (d) => [bool(d, [0, 1])]),
];

export const elementwise: Cases = {
  addcmul: [
    one('addcmul', (d) => [f32(d, [1, 2]), f32(d, [3, 4]), d.given([250, 3], [2], 'uint8'), { value: 2 }]),
    (d) => {
      d.tags.add('fraction of integers');
      d.call('addcmul', i64(d, [1, 2]), i64(d, [3, 4]), i64(d, [5, 6]), { value: 0.5 });
    },
  ],
  addcdiv: [one('addcdiv', (d) => [f32(d, [1, 2]), f32(d, [3, 4]), i64(d, [5, 6])])],
  atan2: [
    one('atan2', (d) => [f32(d, [0, 0, 1, 'inf']), f32(d, [0, '-0', 0, 'inf'])]),
    one('atan2', (d) => [f32(d, [1.8125]), d.given([252], [1], 'uint8')]),
    one('atan2', (d) => [d.given([-2.25], [1], 'float16'), i64(d, ['-4611686018427387905'])]),
  ],
  hypot: [one('hypot', (d) => [f32(d, [0, 3, 'inf', 'nan']), f32(d, [0, 4, 'nan', 'inf'])])],
  logaddexp: [
    one('logaddexp', (d) => [f32(d, [1, 'inf', '-inf', '-inf', 'nan']), f32(d, [1, 'inf', '-inf', 2, 1])]),
    one('logaddexp', (d) => [f32(d, [1, 2]), bool(d, [0, 1])]),
  ],
  ldexp: [one('ldexp', (d) => [f32(d, [1, 2, 3]), i64(d, [-1, 2, -3])])],
  sinc: [
    one('sinc', (d) => [f32(d, [0, '-0', 1e-30, 'inf', 'nan', 2.5])]),
    one('sinc', (d) => [d.given([1, -0.0625, 0.3125], [3], 'float16')]),
  ],
  xlogy: [one('xlogy', (d) => [f32(d, [0, 0, 0, 2, 1]), f32(d, [0, 'nan', -1, 0, 'inf'])])],
  logaddexp2: [one('logaddexp2', (d) => [f32(d, [1, 2]), d.given([3, 251], [2], 'uint8')])],
  ldexp_: [(d) => d.callInPlace('ldexp_', d.given([1, 2], [2], 'float32', false), bool(d, [0, 1]))],
  lcm: [
    (d) => {
      d.tags.add('number below 0');
      d.call('lcm', d.given([6], [1], 'uint8'), -6);
    },
  ],
  logit: [
    one('logit', (d) => [f32(d, [-0.5, 0, '-0', 0.5, 1, 2, 'nan'])]),
    one('logit', (d) => [f32(d, [-0.5, 0.1, 0.5, 0.75, 2, 'nan']), 0.25]),
    one('logit', (d) => [f32(d, ['nan', ...same(31, 0.5)]), 0.4]),
  ],
  floorDivide: [
    one('floorDivide', (d) => [i64(d, [7, -7, 7, -7, 0]), i64(d, [2, 2, -2, -2, 5])]),
    one('floorDivide', (d) => [i64(d, ['-9223372036854775808', '9007199254740993']), i64(d, [-1, 2])]),
    one('floorDivide', (d) => [i64(d, [1, 2]), i64(d, [1, 0])]),
    one('floorDivide', (d) => [
      f32(d, [1, -1, 1, -1, 'inf', 0, 0.3]),
      f32(d, [0, 0, 'inf', 'inf', 2, '-0', 0.1]),
    ]),
    one('floorDivide', (d) => [bool(d, [1, 0]), bool(d, [1, 1])]),
  ],
  remainder: [
    one('remainder', (d) => [i64(d, [7, -7, 7, -7]), i64(d, [3, 3, -3, -3])]),
    one('remainder', (d) => [f32(d, [5.5, -5.5, 1, -1, 'inf', 1]), f32(d, [-2, 2, 'inf', 'inf', 2, 0])]),
    one('remainder', (d) => [i64(d, [1]), 0]),
  ],
  fmod: [
    (d) => {
      d.tags.add('number below 0');
      d.call('fmod', d.given([1, 6], [2], 'uint8'), -2);
    },
    one('fmod', (d) => [f32(d, [1.5, 2]), f32(d, [0, 1.5])]),
    one('fmod', (d) => [f32(d, [5.5, -5.5, 1, -1, 'inf', 1]), f32(d, [-2, 2, 'inf', 'inf', 2, 0])]),
  ],
  copysign: [one('copysign', (d) => [f32(d, [0, 1, '-inf', 'nan']), f32(d, ['-0', '-0', 3, -1])])],
  signbit: [one('signbit', (d) => [f32(d, [0, '-0', '-inf', -1, 1])])],
  erfinv: [one('erfinv', (d) => [f32(d, [-1, 1, 0, '-0', 1.5, 0.999999, 1e-30])])],
  bitwiseLeftShift: [
    one('bitwiseLeftShift', (d) => [
      d.given([1, 1, -1, 1], [4], 'int32'),
      d.given([31, 32, 4, -1], [4], 'int32'),
    ]),
    one('bitwiseLeftShift', (d) => [d.given([129, 255], [2], 'uint8'), d.given([1, 8], [2], 'uint8')]),
  ],
  bitwiseRightShift: [
    one('bitwiseRightShift', (d) => [
      d.given([-8, -8, 8, -8], [4], 'int32'),
      d.given([1, 40, 40, -1], [4], 'int32'),
    ]),
  ],
  gcd: [one('gcd', (d) => [i64(d, [12, -12, 0, 0, 7]), i64(d, [18, 18, 0, 5, -21])])],
  isclose: [
    one('isclose', (d) => [
      f32(d, ['inf', 'inf', '-inf', 1, 'nan']),
      f32(d, ['inf', '-inf', 1, 'inf', 'nan']),
    ]),
    one('isclose', (d) => [i64(d, [100000, 3]), i64(d, [100001, 4])]),
    one('isclose', (d) => [d.given([3, 252], [2], 'uint8'), d.given([5, 6], [2], 'uint8'), { rtol: 0.6 }]),
  ],
  clamp: [
    one('clamp', (d) => [f32(d, [-2, 0, 1, 2]), f32(d, [-1, 0, 1, 3]), f32(d, [1, 1, 1, 2])]),
    one('clamp', (d) => [ramp(d, [2, 3]), f32(d, [-1], []), f32(d, [0, 1, 2])]),
    one('clamp', (d) => [i64(d, [-5, 0, 5]), -1.5, 2]),
    one('clamp', (d) => [f32(d, [1, 2])]),
    (d) => {
      d.tags.add('larger bound');
      d.call('clamp', f32(d, [1]), f32(d, [0]), f32(d, [0, 2]));
    },
    one('clamp', (d) => [bool(d, [0, 1]), bool(d, [1, 1]), bool(d, [0, 1])]),
    one('clamp', (d) => [bool(d, [0, 1]), bool(d, [1, 1])]),
  ],
  pow: [
    one('pow', (d) => [f32(d, zeroTwice), f32(d, [2, 0])]),
    one('pow', (d) => [f32(d, [0, 0, 2]), f32(d, [-1, 0.5, 0])]),
    one('pow', (d) => [0, f32(d, [2, -1, 0])]),
    ...(['float16', 'bfloat16'] as const).flatMap((dtype) =>
      [0.5, -0.5].map((power) => one('pow', (d) => [d.given(['-inf', '-0', 2], [3], dtype), power])),
    ),
    one('pow', (d) => [i64(d, [2, 3]), -1]),
    one('pow', (d) => [i64(d, [2, 3]), i64(d, [1, -2])]),
    one('pow', (d) => [bool(d, [0, 1]), bool(d, [1, 1])]),
    one('pow', (d) => [f32(d, [2, 3]), bool(d, [1, 0])]),
  ],
  maximum: [
    one('maximum', (d) => [f32(d, ['nan', 1, 2, 3]), f32(d, [1, 'nan', 2, 1])]),
    one('maximum', (d) => [d.given([254, 5], [2], 'uint8'), i64(d, [-4], [])]),
    (d) => {
      d.tags.add('number below 0');
      d.call('maximum', d.given([254, 5], [2], 'uint8'), -1);
    },
  ],
  le: [one('le', (d) => [d.given([5], [], 'uint8'), -1])],
  minimum: [one('minimum', (d) => [f32(d, ['nan', 1, 2, 3]), f32(d, [1, 'nan', 2, 1])])],
  ...Object.fromEntries(
    ['floor', 'ceil', 'round', 'trunc', 'silu', 'softplus', 'leakyRelu', 'square', 'neg'].map((op) => [
      op,
      unaryOfIntegers(op),
    ]),
  ),
  elu: [
    ...unaryOfIntegers('elu'),
    one('elu', (d) => [f32(d, new Array<string>(32).fill('nan'))]),
    one('elu', (d) => [f32(d, [0, -1, 1])]),
  ],
  gelu: [...unaryOfIntegers('gelu'), one('gelu', (d) => [f32(d, new Array<string>(32).fill('inf'))])],
  sign: [one('sign', (d) => [f32(d, ['nan', 0, '-0', -2])])],
  add: [one('add', (d) => [bool(d, [0, 1]), bool(d, [1, 1])]), one('add', (d) => [bool(d, [0, 1]), 1])],
  sub: [
    one('sub', (d) => [bool(d, [0, 1]), bool(d, [1, 1])]),
    one('sub', (d) => [i64(d, [0, 1]), bool(d, [1, 1])]),
  ],
  mul: [one('mul', (d) => [bool(d, [0, 1]), bool(d, [1, 1])])],
  div: [one('div', (d) => [bool(d, [0, 1]), bool(d, [1, 1])])],
};
