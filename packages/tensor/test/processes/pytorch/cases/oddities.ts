// Cases that are the same for every seed: calls for which PyTorch's kernels or checks follow no rule of their own, each
// a row of the table of differences.
import type { Draft } from '../draft.ts';

/** 24 elements, which PyTorch computes several at a time. */
const withMissing = Array.from({ length: 24 }, (_, i) => (i % 5 === 0 ? 'nan' : i - 12));

/** Returns a case of a layer with running statistics in training, on a batch without samples. */
const emptyInstanceNorm = (affine: boolean) => (d: Draft) =>
  d.callModule(
    'InstanceNorm2d',
    [2, { affine, trackRunningStats: true }],
    {
      ...(affine ? { weight: d.given([1, 2], [2]), bias: d.given([3, 4], [2]) } : {}),
      running_mean: d.given([1, 2], [2], 'float32', false),
      running_var: d.given([1, 4], [2], 'float32', false),
      num_batches_tracked: d.given([2], [], 'int64'),
    },
    [d.given([], [0, 2, 2, 2])],
  );

export const oddities: Readonly<Record<string, readonly ((d: Draft) => void)[]>> = {
  hardshrink: [(d) => d.call('hardshrink', d.given(withMissing, [24]))],
  searchsorted: [
    (d) => d.call('searchsorted', d.given([0, 1], [2], 'bool', false), d.given([], [0], 'bool', false)),
  ],
  'linalg.cond': [(d) => d.call('linalg.cond', d.given([], [2, 0, 1], 'float32', false), 1)],
  'nn.padSequence': [
    (d) => d.call('nn.padSequence', [d.given([1, 2], [1, 2]), d.given([3], [1])], { paddingValue: 2 }),
  ],
  'nn.InstanceNorm2d': [false, true].map((affine) => emptyInstanceNorm(affine)),
};
