// Cases of layers and losses that are the same for every seed.
import type { Ref } from '../../case.ts';
import type { Draft } from '../../draft.ts';
import { tagAntialiased } from '../spatial/spatial.ts';
import { bool, type Cases, f32, i64, one, ramp, through } from './makers.ts';

/** Returns a case in which the weight of a loss requires a gradient, which PyTorch refuses. */
const weighted =
  (op: string, option: string) =>
  (d: Draft): void => {
    d.tags.add('gradient of a weight');
    d.call(op, d.given([0.25, 0.5], [2]), d.given([0, 1], [2], 'float32', false), {
      [option]: d.given([1, 2], [2]),
    });
  };

const labels = (d: Draft, dtype: 'int32' | 'int64' = 'int64'): Ref => d.given([1, 0], [2], dtype);

export const layers: Cases = {
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
    one('instanceNorm', (d) => [
      ramp(d, [2, 2, 4], 'bfloat16'),
      d.given([0.5, 1], [2], 'bfloat16', false),
      d.given([1, 2], [2], 'bfloat16', false),
      { weight: f32(d, [1, 2]), bias: f32(d, [0, 1]) },
    ]),
  ],
  maxPool3d: [
    one('maxPool3d', (d) => [through(d, ramp(d, [2, 3, 2, 2]), ['permute', [0, 3, 1, 2]]), [1, 1, 1]]),
  ],
  gumbelSoftmax: [
    (d) => {
      d.compares = 'kind';
      d.call('gumbelSoftmax', d.given([], [1, 0, 3], 'uint8', false), 2);
    },
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
    (d) => {
      tagAntialiased(d, [5, 3], { scaleFactor: 1 });
      d.call('interpolate', ramp(d, [1, 1, 5, 3], 'bfloat16'), {
        scaleFactor: 1,
        mode: 'bicubic',
        antialias: true,
      });
    },
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
  normalize: [one('normalize', (d) => [f32(d, [1, -3, 2, 0.5], [2, 2]), { p: { $: 'inf' } }])],
  'nn.ConstantPad1d': [(d) => d.callModule('ConstantPad1d', [[1, 2], { $: '-inf' }], {}, [ramp(d, [2, 3])])],
  'nn.Embedding': [-1, -3, -4].map((paddingIdx) => (d: Draft): void => {
    const index = i64(d, [2, 0, 2, 1]);
    d.callModule('Embedding', [3, 2, { paddingIdx }], { weight: ramp(d, [3, 2]) }, [index]);
  }),
};
