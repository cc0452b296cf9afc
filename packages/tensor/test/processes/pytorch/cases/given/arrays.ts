// Cases of indexing, shapes, products and creation that are the same for every seed.
import type { Ref } from '../../case.ts';
import type { Draft } from '../../draft.ts';
import { bool, type Cases, f32, i64, one, ramp, through } from './makers.ts';

/** Returns a case whose operands are a tensor and its transpose. */
const overlapping =
  (op: string) =>
  (d: Draft): void => {
    d.tags.add('overlap');
    const x = d.given([1, 2, 3, 4], [2, 2], 'float32', false);
    d.call('transpose', x, 0, 1);
    d.callInPlace(op, x, { $: 1 });
  };

export const arrays: Cases = {
  gradient: (['uint8', 'float16', 'bfloat16'] as const).map((dtype) =>
    one('gradient', (d) => [d.given([5, 4, 1], [3], dtype)]),
  ),
  indexReduce: [
    (d) => {
      d.tags.add('without self');
      d.call('indexReduce', f32(d, [0.5, 2]), 0, i64(d, [0, 1]), f32(d, [0.5, 1]), 'amin', {
        includeSelf: false,
      });
    },
    one('indexReduce', (d) => {
      const source = (values: number[]): Ref => d.given(values, [1, 2], 'bfloat16');
      return [source([2.75, 0.1875]), 1, d.given([0, 1], [2], 'int32'), source([0.9375, 2.8125]), 'prod'];
    }),
  ],
  blockDiag: [one('blockDiag', (d) => [i64(d, []), f32(d, [1.5], [])])],
  kron: [
    one('kron', (d) => [
      d.given([-0.5, 0, -0.5, 0, 1, 2], [2, 3], 'float64'),
      through(d, f32(d, [1.5, 0.25], [1, 2]), ['transpose', -1, 0]),
    ]),
  ],
  bincount: [one('bincount', (d) => [d.given([], [0], 'uint8', false), { weights: i64(d, [5]) }])],
  maskedFill: [
    one('maskedFill', (d) => [i64(d, [1, 2]), bool(d, [0, 1]), 1.5]),
    one('maskedFill', (d) => [i64(d, [1, 2]), bool(d, [0, 0]), { $: 'nan' }]),
    (d) => {
      d.tags.add('number below 0');
      d.call('maskedFill', d.given([1, 2], [2], 'uint8'), bool(d, [0, 1]), -1);
    },
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
  where: [one('where', (d) => [d.given([1, 0], [2], 'uint8'), f32(d, [1, 2]), f32(d, [3, 4])])],
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
  arange: [
    one('arange', () => [3]),
    one('arange', () => [3, 1]),
    ...(['int32', 'int64'] as const).map((dtype) => (d: Draft): void => {
      d.tags.add('fraction as step');
      d.call('arange', 0, -2, -0.5, { dtype });
    }),
    one('arange', () => [0, 2, 1, { dtype: 'bool' }]),
  ],
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
