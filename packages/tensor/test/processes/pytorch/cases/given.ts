// Cases that are the same for every seed: earlier bugs, and one case for each row of the table of differences.
import type { Arg, Ref } from '../case.ts';
import type { Draft, TensorSpec } from '../draft.ts';
import { tagAntialiased } from './spatial/spatial.ts';

type Values = readonly (number | string)[];

const f32 = (d: Draft, values: Values, shape: readonly number[] = [values.length]): Ref =>
  d.given(values, shape);
const i64 = (d: Draft, values: Values, shape: readonly number[] = [values.length]): Ref =>
  d.given(values, shape, 'int64');
const bool = (d: Draft, values: Values): Ref => d.given(values, [values.length], 'bool');
const ramp = (d: Draft, shape: readonly number[], dtype: TensorSpec['dtype'] = 'float32'): Ref =>
  d.given(
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => ((i * 5) % 7) - 3),
    shape,
    dtype,
  );

/** Returns a case that calls an op with the arguments that a function makes. */
const one =
  (op: string, make: (d: Draft) => readonly Arg[]) =>
  (d: Draft): void =>
    d.call(op, ...make(d));

/** Returns cases of a reduction with the same dimension twice. */
const twice = (op: string): readonly ((d: Draft) => void)[] => [
  one(op, (d) => [ramp(d, [2, 3]), [0, 0]]),
  one(op, (d) => [ramp(d, [2, 3]), [1, -1]]),
];

const same = (count: number, value: number): number[] => new Array<number>(count).fill(value);

/** Returns cases of variance, std or varMean. */
const spread = (op: string) => [
  ...twice(op),
  one(op, (d) => [f32(d, same(6, 0.5), [2, 3]), 1]),
  one(op, (d) => [f32(d, [1, 2, 4]), [], { correction: 1 }]),
  one(op, (d) => [f32(d, [1])]),
  one(op, (d) => [f32(d, [1, 2]), [], { correction: 2 }]),
];

const zeroTwice: Values = [0, 0];

/** Returns a case in which the weight of a loss requires a gradient, which PyTorch refuses. */
const weighted =
  (op: string, option: string) =>
  (d: Draft): void => {
    d.tags.add('gradient of a weight');
    d.call(op, d.given([0.25, 0.5], [2]), d.given([0, 1], [2], 'float32', false), {
      [option]: d.given([1, 2], [2]),
    });
  };

/** Returns a case whose operands are a tensor and its transpose. */
const overlapping =
  (op: string) =>
  (d: Draft): void => {
    d.tags.add('overlap');
    const x = d.given([1, 2, 3, 4], [2, 2], 'float32', false);
    d.call('transpose', x, 0, 1);
    d.callInPlace(op, x, { $: 1 });
  };

const unaryOfIntegers = (op: string) => [
  one(op, (d) => [i64(d, [-2, 0, 3])]),
  one(op, (d) => [bool(d, [0, 1])]),
];

const labels = (d: Draft, dtype: 'int32' | 'int64' = 'int64'): Ref => d.given([1, 0], [2], dtype);

export const given: Readonly<Record<string, readonly ((d: Draft) => void)[]>> = {
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
  gradient: (['uint8', 'float16', 'bfloat16'] as const).map((dtype) =>
    one('gradient', (d) => [d.given([5, 4, 1], [3], dtype)]),
  ),
  ldexp: [one('ldexp', (d) => [f32(d, [1, 2, 3]), i64(d, [-1, 2, -3])])],
  indexReduce: [
    (d) => {
      d.tags.add('without self');
      d.call('indexReduce', f32(d, [0.5, 2]), 0, i64(d, [0, 1]), f32(d, [0.5, 1]), 'amin', {
        includeSelf: false,
      });
    },
  ],
  sinc: [
    one('sinc', (d) => [f32(d, [0, '-0', 1e-30, 'inf', 'nan', 2.5])]),
    one('sinc', (d) => [d.given([1, -0.0625, 0.3125], [3], 'float16')]),
  ],
  xlogy: [one('xlogy', (d) => [f32(d, [0, 0, 0, 2, 1]), f32(d, [0, 'nan', -1, 0, 'inf'])])],
  logit: [
    one('logit', (d) => [f32(d, [-0.5, 0, '-0', 0.5, 1, 2, 'nan'])]),
    one('logit', (d) => [f32(d, [-0.5, 0.1, 0.5, 0.75, 2, 'nan']), 0.25]),
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
  std: spread('std'),
  variance: spread('variance'),
  varMean: [...spread('varMean'), one('varMean', (d) => [f32(d, ['inf', 1])])],
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
  cosineSimilarity: [
    one('cosineSimilarity', (d) => [f32(d, [0, 0, 1, 2], [2, 2]), f32(d, [1, 2, 3, 4], [2, 2])]),
    one('cosineSimilarity', (d) => [ramp(d, [3, 2, 2]), ramp(d, [2, 2]), 2]),
    one('cosineSimilarity', (d) => [ramp(d, [2, 3]), f32(d, [2], [1, 1]), 1]),
  ],
  ...Object.fromEntries(
    ['floor', 'ceil', 'round', 'trunc', 'silu', 'softplus', 'leakyRelu', 'square', 'neg'].map((op) => [
      op,
      unaryOfIntegers(op),
    ]),
  ),
  cummax: [one('cummax', (d) => [f32(d, [], [0, 2]), 5])],
  cummin: [one('cummin', (d) => [f32(d, [], [0, 2]), 5])],
  nanmedian: [one('nanmedian', (d) => [i64(d, [], [0])])],
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
  maskedFill: [
    one('maskedFill', (d) => [i64(d, [1, 2]), bool(d, [0, 1]), 1.5]),
    one('maskedFill', (d) => [i64(d, [1, 2]), bool(d, [0, 0]), { $: 'nan' }]),
    (d) => {
      d.tags.add('number below 0');
      d.call('maskedFill', d.given([1, 2], [2], 'uint8'), bool(d, [0, 1]), -1);
    },
  ],
  sum: [...twice('sum'), one('sum', (d) => [ramp(d, [2, 3]), []])],
  mean: [...twice('mean'), one('mean', (d) => [ramp(d, [2, 3]), []])],
  prod: [
    ...twice('prod'),
    one('prod', (d) => [f32(d, ['nan', 2, 0, 3], [2, 2]), 1]),
    one('prod', (d) => [f32(d, ['inf', 2, 0, 3], [2, 2]), [1, 0]]),
  ],
  max: [
    ...twice('max'),
    one('max', (d) => [f32(d, [1, 'nan', 2, 2], [2, 2]), 1]),
    one('max', (d) => [f32(d, [1, 'nan', 2, 'nan'])]),
  ],
  min: [...twice('min'), one('min', (d) => [f32(d, [1, 'nan', 2, 'nan'])])],
  any: [...twice('any'), one('any', (d) => [d.given([0, 2], [2], 'uint8')])],
  all: [...twice('all'), one('all', (d) => [d.given([0, 2], [2], 'uint8')])],
  norm: [
    ...twice('norm'),
    one('norm', (d) => [f32(d, [0, 2, 0, -3], [2, 2]), 1, { p: 0 }]),
    one('norm', (d) => [f32(d, [0, 2, 1, -3], [2, 2]), 1, { p: { $: '-inf' } }]),
    one('norm', (d) => [f32(d, [0, 0, 1, 'inf'], [2, 2]), 1, { p: 3 }]),
  ],
  logSumExp: [
    ...twice('logSumExp'),
    one('logSumExp', (d) => [f32(d, [], [2, 0]), 1]),
    one('logSumExp', (d) => [f32(d, ['-inf', '-inf', 1, 'inf'], [2, 2]), 1]),
    one('logSumExp', (d) => [ramp(d, [2, 3]), []]),
  ],
  squeeze: [one('squeeze', (d) => [ramp(d, [2, 1, 3]), 0])],
  t: [one('t', (d) => [ramp(d, [3])]), one('t', (d) => [ramp(d, [2, 3, 2])])],
  roll: [
    one('roll', (d) => [ramp(d, [2, 3]), [1, -2], [0, 1]]),
    one('roll', (d) => [ramp(d, [2, 3]), [1, 2]]),
    one('roll', (d) => [f32(d, [], [2, 0]), 1, 3]),
  ],
  matmul: [
    one('matmul', (d) => [ramp(d, [2, 3], 'int64'), ramp(d, [3, 2], 'int64')]),
    one('matmul', (d) => [d.given([], [2, 0], 'bool'), d.given([], [0, 2], 'bool')]),
  ],
  einsum: [
    one('einsum', (d) => ['...ij,...jk->...ik', ramp(d, [2, 2, 3]), ramp(d, [3, 2])]),
    one('einsum', (d) => ['ii->i', ramp(d, [3, 3])]),
    one('einsum', (d) => ['ii', ramp(d, [3, 3])]),
    one('einsum', (d) => [
      'ij,jk,kl->il',
      d.given([-4, 1], [1, 2], 'int32'),
      d.given([3, 1, 2], [1, 3], 'int32'),
      d.given([1, -2, 2], [3, 1], 'int32'),
    ]),
    one('einsum', (d) => ['i,j->', d.given([2], [1], 'int32'), d.given([3], [1], 'int32')]),
    one('einsum', (d) => ['i,j->', bool(d, [1]), bool(d, [1])]),
    one('einsum', (d) => [
      'bij,bjk->',
      d.given([1, 1], [2, 1, 1], 'bool'),
      d.given([1, 0, 1, 1], [2, 1, 2], 'bool'),
    ]),
  ],
  scaledDotProductAttention: [
    one('scaledDotProductAttention', (d) => [
      ramp(d, [1, 4, 2, 3]),
      ramp(d, [1, 2, 3, 3]),
      ramp(d, [1, 2, 3, 2]),
      { enableGqa: true },
    ]),
    one('scaledDotProductAttention', (d) => [
      ramp(d, [2, 3]),
      ramp(d, [2, 3]),
      ramp(d, [2, 3]),
      { mask: f32(d, [0, 1, 2, -1], [2, 2]) },
    ]),
    one('scaledDotProductAttention', (d) => [
      d.given([1, 2], [2, 1], 'bfloat16', false),
      ramp(d, [2, 1], 'bfloat16'),
      ramp(d, [2, 1], 'bfloat16'),
    ]),
    one('scaledDotProductAttention', (d) => [
      f32(d, [1, 2], [2, 1]),
      f32(d, ['-inf', '-inf'], [2, 1]),
      f32(d, [1, 2], [2, 1]),
    ]),
    // The masked key has values that must not reach the result.
    ...['inf', 'nan'].map((hidden) =>
      one('scaledDotProductAttention', (d) => [
        f32(d, [0, -1.5, 1.5], [3, 1]),
        f32(d, [-2, 3, hidden], [3, 1]),
        f32(d, [1, 2, 3, 4, 5, 6], [3, 2]),
        { mask: d.given([1, 1, 0], [1, 3], 'bool') },
      ]),
    ),
    (d) => {
      d.tags.add('mask of fewer than 2 dimensions');
      const mask = d.given([1], [], 'float32', false);
      d.call('scaledDotProductAttention', ...[1, 2, 3].map(() => ramp(d, [1, 1, 2, 3])), { mask });
    },
    one('scaledDotProductAttention', (d) => [
      ...[1, 2, 3].map(() => f32(d, [], [0, 2, 1])),
      { mask: ramp(d, [2, 2]) },
    ]),
  ],
  conv2d: [
    one('conv2d', (d) => [ramp(d, [2, 4, 3]), ramp(d, [2, 2, 2, 2]), null, { padding: 1 }]),
    one('conv2d', (d) => [ramp(d, [1, 1, 2, 2], 'int64'), ramp(d, [1, 1, 1, 1], 'int64')]),
  ],
  conv1d: [
    one('conv1d', (d) => [ramp(d, [2, 4]), ramp(d, [2, 2, 2])]),
    one('conv1d', (d) => [ramp(d, [1, 1, 2], 'int64'), ramp(d, [1, 1, 1], 'int64')]),
  ],
  convTranspose2d: [
    one('convTranspose2d', (d) => [ramp(d, [2, 4, 3]), ramp(d, [2, 2, 2, 2]), null, { stride: 2 }]),
    one('convTranspose2d', (d) => [ramp(d, [1, 1, 2, 2], 'int64'), ramp(d, [1, 1, 1, 1], 'int64')]),
    one('convTranspose2d', (d) => [ramp(d, [1, 1, 0, 2]), ramp(d, [1, 1, 2, 2])]),
  ],
  groupNorm: [
    (d) => {
      d.tags.add('bias without weight');
      d.call('groupNorm', ramp(d, [2, 2, 3]), 2, { bias: f32(d, [1, 2]) });
    },
    one('groupNorm', (d) => [ramp(d, [1, 2]), 2]),
    one('groupNorm', (d) => [f32(d, [], [2, 2, 0]), 2]),
    one('groupNorm', (d) => [f32(d, [], [0, 2, 3]), 2, { weight: f32(d, [1, 2]), bias: f32(d, [1, 2]) }]),
  ],
  instanceNorm: [
    one('instanceNorm', (d) => [ramp(d, [2, 2])]),
    one('instanceNorm', (d) => [ramp(d, [2, 2, 1])]),
    one('instanceNorm', (d) => [ramp(d, [2, 2, 2]), null, null, { useInputStats: false }]),
  ],
  localResponseNorm: [one('localResponseNorm', (d) => [ramp(d, [1, 3, 2, 2], 'bfloat16'), 2])],
  im2col: [one('im2col', (d) => [ramp(d, [1, 2, 3], 'int64'), [1, 2]])],
  col2im: [one('col2im', (d) => [d.given([0, 1, 1, 0], [2, 2], 'bool'), [1, 3], [1, 2]])],
  pixelUnshuffle: [one('pixelUnshuffle', (d) => [f32(d, [], [0, 1, 2, 2]), 2])],
  maxUnpool2d: [
    one('maxUnpool2d', (d) => [ramp(d, [1, 1, 1]), i64(d, [5], [1, 1, 1]), 2]),
    one('maxUnpool2d', (d) => [ramp(d, [1, 1, 1]), i64(d, [3], [1, 1, 1]), 2, { outputSize: [5, 3] }]),
  ],
  interpolate: [
    one('interpolate', (d) => [ramp(d, [1, 2, 2, 3, 4]), { size: [3, 2, 5], mode: 'area' }]),
    (d) => {
      d.tags.add('output of size 0');
      d.call('interpolate', ramp(d, [1, 2, 1]), { scaleFactor: 0.5, mode: 'area' });
    },
    ...[[4], [3, 5, 1]].map((space) => (d: Draft): void => {
      d.tags.add('size nearly kept or doubled');
      d.call('interpolate', ramp(d, [1, 1, ...space]), { scaleFactor: 2.2 });
    }),
    one('interpolate', (d) => [f32(d, ['inf', 1, 2, 3], [1, 1, 2, 2]), { size: [2, 3], mode: 'bilinear' }]),
    one('interpolate', (d) => [
      d.given([0, 250, 3, 4], [1, 1, 2, 2], 'uint8'),
      { size: 3, mode: 'bilinear' },
    ]),
    one('interpolate', (d) => [d.given([0, 250, 3, 4], [1, 1, 2, 2], 'uint8'), { scaleFactor: 2 }]),
    one('interpolate', (d) => [ramp(d, [1, 1, 2, 2], 'int64'), { scaleFactor: 2 }]),
    one('interpolate', (d) => [ramp(d, [1, 1, 2, 2]), { size: 3, scaleFactor: 2 }]),
    one('interpolate', (d) => [ramp(d, [1, 1, 2, 2]), {}]),
    one('interpolate', (d) => [ramp(d, [1, 1, 2, 2]), { size: 3, recomputeScaleFactor: true }]),
    one('interpolate', (d) => [ramp(d, [1, 2, 2]), { size: 3, mode: 'bilinear' }]),
    one('interpolate', (d) => [ramp(d, [1, 1, 7, 5]), { scaleFactor: 0.1 }]),
    ...(
      [
        ['float32', [3, 2], { size: [5, 1] }],
        ['float32', [2, 3], { scaleFactor: [1.3, 2] }],
        ['float16', [7, 5], { size: 2 }],
      ] as const
    ).map(([dtype, space, sizes]) => (d: Draft): void => {
      tagAntialiased(d, space, sizes);
      d.call('interpolate', d.tensor([1, 2, ...space], { dtype, domain: 'finite' }), {
        ...sizes,
        mode: 'bilinear',
        antialias: true,
      });
    }),
    one('interpolate', (d) => [ramp(d, [1, 1, 2, 2]), { size: 3, antialias: true }]),
  ],
  pad: [
    one('pad', (d) => [ramp(d, [1, 5]), [-1, 2], { mode: 'circular' }]),
    one('pad', (d) => [ramp(d, [1, 5]), [-2, -2], { mode: 'circular' }]),
    one('pad', (d) => [f32(d, [], [2, 0, 3]), [1, 2], { mode: 'reflect' }]),
    one('pad', (d) => [f32(d, [], [0, 2, 3]), [1, 2], { mode: 'reflect' }]),
    one('pad', (d) => [f32(d, [], [2, 0, 3]), [1, 3], { mode: 'circular' }]),
    one('pad', (d) => [f32(d, [], [2, 2, 0]), [1, 0], { mode: 'replicate' }]),
    one('pad', (d) => [ramp(d, [1, 3]), [3, -2], { mode: 'replicate' }]),
    one('pad', (d) => [ramp(d, [2, 2, 2, 3]), [1, 0], { mode: 'reflect' }]),
    one('pad', (d) => [ramp(d, [1, 3]), [1, 0], { mode: 'reflect', value: 1 }]),
    one('pad', (d) => [ramp(d, [3]), [-4, 2]]),
    one('pad', (d) => [ramp(d, [3]), [-3, 2]]),
    one('pad', (d) => [i64(d, ['9007199254740993', 2]), [1, 1], { value: 1.5 }]),
    one('pad', (d) => [d.given([1, 2], [2], 'uint8'), [1, 1], { value: -1 }]),
    one('pad', (d) => [d.given([0, 1], [1, 2], 'bool'), [1, 1], { mode: 'reflect' }]),
  ],
  adaptiveAvgPool2d: [
    one('adaptiveAvgPool2d', (d) => [ramp(d, [1, 2, 3, 4]), [null, 2]]),
    one('adaptiveAvgPool2d', (d) => [f32(d, [], [1, 2, 0, 3]), 1]),
    (d) => {
      d.tags.add('output of size 0');
      d.call('adaptiveAvgPool2d', ramp(d, [1, 2, 3]), [2, 0]);
    },
  ],
  maxPool2d: [
    one('maxPool2d', (d) => [ramp(d, [2, 3, 4]), 2]),
    one('maxPool2d', (d) => [ramp(d, [1, 2, 2]), 3, { ceilMode: true }]),
  ],
  crossEntropy: [
    one('crossEntropy', (d) => [f32(d, [1, 2, 3]), i64(d, [1], [])]),
    (d) => {
      d.tags.add('label of shape [1]');
      d.call('crossEntropy', f32(d, [1, 2, 3]), i64(d, [1]));
    },
    one('crossEntropy', (d) => [ramp(d, [2, 3]), labels(d, 'int32')]),
    one('crossEntropy', (d) => [ramp(d, [2, 2]), f32(d, [1, 0, 0.5, 0.5], [2, 2]), { ignoreIndex: 1 }]),
    ...['inf', 'nan'].map((hidden) =>
      one('crossEntropy', (d) => [f32(d, [1, 2, hidden, 3], [2, 2]), labels(d), { ignoreIndex: 0 }]),
    ),
  ],
  nllLoss: [
    one('nllLoss', (d) => [ramp(d, [1, 3]), i64(d, [1]), { ignoreIndex: 1 }]),
    one('nllLoss', (d) => [
      ramp(d, [1, 3]),
      i64(d, [1]),
      { ignoreIndex: 1, weight: d.given([1, 2, 3], [3], 'float32', false) },
    ]),
    one('nllLoss', (d) => [
      ramp(d, [2, 2], 'float64'),
      labels(d),
      { weight: d.given([1, 2], [2], 'float32', false) },
    ]),
    one('nllLoss', (d) => [f32(d, [-1, -2, -3]), i64(d, [1], [])]),
    one('nllLoss', (d) => [ramp(d, [2, 3]), labels(d, 'int32')]),
  ],
  mseLoss: [one('mseLoss', (d) => [ramp(d, [2, 3]), ramp(d, [3])])],
  smoothL1Loss: [one('smoothL1Loss', (d) => [f32(d, ['inf', 1, 'nan']), f32(d, [0, '-inf', 1])])],
  maxPool2dWithIndices: [one('maxPool2dWithIndices', (d) => [ramp(d, [1, 2, 2], 'int64'), 2])],
  huberLoss: [
    one('huberLoss', (d) => [f32(d, [1, 3]), f32(d, [0, 0])]),
    one('huberLoss', (d) => [f32(d, ['inf', 1, 'nan']), f32(d, [0, '-inf', 1])]),
    one('huberLoss', (d) => [f32(d, [1, 2]), d.given([0, 1], [2], 'float64')]),
  ],
  bce: [
    one('bce', (d) => [f32(d, [0.5, 1.5]), f32(d, [0, 1])]),
    one('bce', (d) => [f32(d, [0, 1]), f32(d, [0.25, 0.5])]),
    one('bce', (d) => [d.given([0, 1], [2], 'float64'), d.given([0.25, 0.5], [2], 'float64')]),
    one('bce', (d) => [f32(d, [0, 1]), d.given([0.25, 0.5], [2], 'float32', false), { reduction: 'none' }]),
    one('bce', (d) => [
      d.given([0.25], [1], 'float16'),
      d.given([0.5], [1], 'float16', false),
      { weight: d.given([1, 2], [2], 'float32', false), reduction: 'none' },
    ]),
    weighted('bce', 'weight'),
  ],
  where: [one('where', (d) => [d.given([1, 0], [2], 'uint8'), f32(d, [1, 2]), f32(d, [3, 4])])],
  bceWithLogits: [
    one('bceWithLogits', (d) => [
      f32(d, ['-inf']),
      f32(d, [0.5]),
      { posWeight: d.given([0.5], [1], 'float32', false) },
    ]),
    one('bceWithLogits', (d) => [
      f32(d, [0.25, -1]),
      d.given([0.5, 1], [2], 'float16', false),
      { posWeight: d.given([1, 2], [2], 'float64', false), reduction: 'none' },
    ]),
    weighted('bceWithLogits', 'weight'),
    weighted('bceWithLogits', 'posWeight'),
  ],
  scatterAdd: [
    (d) => {
      d.tags.add('smaller index');
      d.call('scatterAdd', ramp(d, [2, 3]), 1, i64(d, [2, 0], [1, 2]), ramp(d, [2, 3]));
    },
    one('scatterAdd', (d) => [ramp(d, [2, 3]), 0, i64(d, [], [0, 3]), f32(d, [], [0, 3])]),
    one('scatterAdd', (d) => [f32(d, [1], []), 0, i64(d, [0], []), f32(d, [2], [])]),
  ],
  gather: [one('gather', (d) => [f32(d, [1], []), 0, i64(d, [0], [])])],
  takeAlongDim: [
    one('takeAlongDim', (d) => [ramp(d, [2, 3]), i64(d, [-1, 0, -2], [1, 3]), 0]),
    one('takeAlongDim', (d) => [ramp(d, [2, 3]), i64(d, [-1, 0, -6])]),
    (d) => {
      d.tags.add('index out of range');
      d.call('takeAlongDim', ramp(d, [2, 3]), i64(d, [2, 0, -3], [1, 3]), 0);
    },
  ],
  take: ['uint8', 'bool', 'float32'].map((dtype) =>
    one('take', (d) => [ramp(d, [2, 3]), d.given([0, 1], [2], dtype as 'uint8', false)]),
  ),
  indexFill: [one('indexFill', (d) => [ramp(d, [2, 3]), 1, i64(d, [-1, 0]), 7])],
  inner: [
    one('inner', (d) => [f32(d, [1, 2, 3, 4], [2, 2]), f32(d, [3])]),
    (d) => {
      const values = [1, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0];
      d.inputs.push({ dtype: 'bool', shape: [4, 3], values, views: [['select', 1, 0]], grad: false });
      d.call('inner', { $: 0 }, bool(d, [1, 1, 1, 0]));
    },
  ],
  indexCopy: [one('indexCopy', (d) => [f32(d, [1], []), 0, i64(d, [0, 0]), f32(d, [2, 3])])],
  scatterReduce: [
    (d) => {
      d.tags.add('mean of uint8');
      const row = (...values: number[]): Ref => d.given(values, [1], 'uint8');
      d.call('scatterReduce', row(254), 0, i64(d, [0]), row(4), 'mean');
    },
    (d) => {
      d.tags.add('without self');
      d.call('scatterReduce', f32(d, [2, 1]), 0, i64(d, [0, 0]), f32(d, [2, 1]), 'amax', {
        includeSelf: false,
      });
    },
  ],
  indexSelect: [one('indexSelect', (d) => [f32(d, [1], []), 0, i64(d, [0])])],
  oneHot: [one('oneHot', (d) => [i64(d, [0, 2])]), one('oneHot', (d) => [d.given([0, 2], [2], 'int32'), 3])],
  topk: [one('topk', (d) => [f32(d, [1], []), 0])],
  batchNorm: [
    one('batchNorm', (d) => [
      f32(d, [], [0, 2]),
      d.given([1, 2], [2], 'float32', false),
      d.given([1, 2], [2], 'float32', false),
      { training: true, weight: f32(d, [1, 2]) },
    ]),
    one('batchNorm', (d) => [f32(d, [], [0, 2])]),
    // An empty slice of an empty tensor begins after the end of its memory.
    (d) => {
      d.inputs.push({
        dtype: 'float32',
        shape: [0, 2, 3],
        values: [],
        views: [['slice', 2, 2, 3, 1]],
        grad: true,
      });
      const statistics = d.given([1, 2], [2], 'float32', false);
      d.call('batchNorm', { $: 0 }, statistics, statistics);
    },
  ],
  layerNorm: [
    one('layerNorm', (d) => [f32(d, [], [2, 0]), [0], { weight: f32(d, [], [0]) }]),
    one('layerNorm', (d) => [
      ramp(d, [2, 2], 'bfloat16'),
      [2],
      { weight: ramp(d, [2], 'bfloat16'), bias: ramp(d, [2]) },
    ]),
    one('layerNorm', (d) => [
      ramp(d, [2, 2], 'bfloat16'),
      [2],
      { bias: d.given([1, 2], [2], 'float32', false) },
    ]),
  ],
  rmsNorm: (
    [
      ['float64', 'float32'],
      ['float32', 'float64'],
      ['float16', 'bfloat16'],
    ] as const
  ).map(([dtype, other]) =>
    one('rmsNorm', (d) => [ramp(d, [2, 2], dtype), [2], { weight: ramp(d, [2], other) }]),
  ),
  linear: [
    one('linear', (d) => [ramp(d, [2, 3]), ramp(d, [2, 3]), f32(d, [0.5]), { activation: 'gelu' }]),
    one('linear', (d) => [ramp(d, [2, 1]), f32(d, [], [0, 1]), f32(d, [0.5])]),
    one('linear', (d) => [ramp(d, [2, 3], 'int64'), ramp(d, [2, 3], 'int64'), i64(d, [2])]),
    one('linear', (d) => [ramp(d, [2, 3], 'int64'), ramp(d, [1, 3], 'int64'), null, { activation: 'relu' }]),
  ],
  dropout: [
    one('dropout', (d) => [i64(d, [1, 2]), 0.5, { training: false }]),
    one('dropout', (d) => [i64(d, [1, 2]), 1]),
    one('dropout', (d) => [bool(d, [0, 1]), 1]),
  ],
  arange: [
    one('arange', () => [3]),
    one('arange', () => [3, 1]),
    ...(['int32', 'int64'] as const).map((dtype) => (d: Draft): void => {
      d.tags.add('fraction as step');
      d.call('arange', 0, -2, -0.5, { dtype });
    }),
    one('arange', () => [0, 2, 1, { dtype: 'bool' }]),
  ],
  normalize: [one('normalize', (d) => [f32(d, [1, -3, 2, 0.5], [2, 2]), { p: { $: 'inf' } }])],
  'nn.ConstantPad1d': [(d) => d.callModule('ConstantPad1d', [[1, 2], { $: '-inf' }], {}, [ramp(d, [2, 3])])],
  'nn.Embedding': [-1, -3, -4].map((paddingIdx) => (d: Draft): void => {
    const index = i64(d, [2, 0, 2, 1]);
    d.callModule('Embedding', [3, 2, { paddingIdx }], { weight: ramp(d, [3, 2]) }, [index]);
  }),
  full: [one('full', () => [[2], 3])],
  tensor: [one('tensor', () => [[1, 2]])],
  flatten: [one('flatten', (d) => [f32(d, [1], []), 1])],
  unflatten: [one('unflatten', (d) => [ramp(d, [2, 1]), 1, []])],
  flip: [one('flip', (d) => [ramp(d, [2, 3]), [0, -2]])],
  cat: [one('cat', (d) => [[ramp(d, [2, 3]), f32(d, [])], 1]), one('cat', (d) => [[f32(d, [])], -2])],
  ...Object.fromEntries(['add_', 'sub_', 'mul_', 'div_'].map((op) => [op, [overlapping(op)]])),
  copy_: [
    overlapping('copy_'),
    (d) => {
      d.inputs.push({ dtype: 'float32', shape: [1], values: [1], views: [['expand', [3]]], grad: false });
      d.callInPlace('copy_', { $: 0 }, { $: 0 });
    },
    (d) => {
      d.tags.add('number below 0');
      d.callInPlace('copy_', d.given([1, 2], [2], 'uint8', false), -1);
    },
  ],
  fill_: [
    (d) => {
      d.given([1], [1], 'float32', false);
      d.inputs.push({ ...d.inputs.pop()!, views: [['expand', [3]]] });
      d.callInPlace('fill_', { $: 0 }, 2);
    },
  ],
};
