// Cases of functions that order, count or describe elements.
import type { DType } from '../../../../../src/index.ts';
import type { Arg, Ref } from '../../case.ts';
import { allTypes, countOf, type Draft, nothing, type TensorSpec } from '../../draft.ts';
import { options } from '../arrays/arrays.ts';
import type { Makers } from '../index.ts';
import { overDims } from './reductions.ts';

const flagged = (d: Draft): Arg => d.draws.pick([nothing, true, false]);

/** Adds an input with sorted rows. */
function sortedRows(d: Draft, shape: readonly number[], dtype: (typeof allTypes)[number]): Ref {
  const cols = shape.at(-1)!;
  const values: number[] = [];
  for (let row = 0; row < countOf(shape) / Math.max(1, cols); row++)
    values.push(...Array.from({ length: cols }, () => d.draws.int(0, 6)).sort((a, b) => a - b));
  return d.given(values, shape, dtype, false);
}

function searchsorted(d: Draft): void {
  const { draws } = d;
  const dtype = d.anyType();
  const isFlat = draws.chance(0.5);
  const lead = isFlat ? [] : d.shape(0, 2);
  const sequence = sortedRows(d, [...lead, d.size()], dtype);
  const values = draws.chance(0.15)
    ? draws.pick([0, 2, 7])
    : d.tensor(isFlat ? d.shape(0, 3) : [...lead, ...(draws.chance(0.05) ? [1, 2] : [d.size()])], {
        dtype: d.beside(dtype, allTypes),
        domain: draws.chance(0.3) ? 'special' : [0, 7],
        grad: false,
      });
  const side = draws.pick([nothing, nothing, 'left', 'right']);
  d.call('searchsorted', sequence, values, options({ right: flagged(d), side, outInt32: flagged(d) }));
}

function bucketize(d: Draft): void {
  const { draws } = d;
  const dtype = d.anyType();
  const values = draws.chance(0.1)
    ? draws.pick([0, 2, 7])
    : d.tensor(d.shape(), { dtype: d.beside(dtype, allTypes), domain: [0, 7], grad: false });
  const boundaries = sortedRows(d, draws.chance(0.05) ? [1, 2] : [d.size()], dtype);
  d.call('bucketize', values, boundaries, options({ right: flagged(d), outInt32: flagged(d) }));
}

const keep = (d: Draft): Arg => d.draws.pick([nothing, false, true]);

/** Draws a tensor and one dimension of it. */
function withDim(d: Draft, spec: TensorSpec = {}): [x: Ref, dim: Arg] {
  const shape = d.shape();
  return [d.tensor(shape, { dtype: d.anyType(), ...spec }), d.dim(shape.length)];
}

const along =
  (op: string, spec: TensorSpec = {}) =>
  (d: Draft): void =>
    d.call(op, ...withDim(d, spec));

function argsort(d: Draft): void {
  const [x, dim] = withDim(d);
  d.call('argsort', x, dim, options({ descending: flagged(d), stable: true }));
}

function kthvalue(d: Draft): void {
  const shape = d.shape();
  // PyTorch does not define which of equal elements it takes, so no two are equal.
  const dtype = d.anyType();
  const x = d.tensor(shape, { dtype: dtype === 'bool' ? 'int32' : dtype, domain: 'distinct' });
  const dim = d.dim(shape.length);
  d.call(
    'kthvalue',
    x,
    d.draws.int(d.draws.chance(0.06) ? 0 : 1, Math.max(1, shape.at(dim) ?? 1)),
    dim,
    keep(d),
  );
}

const median =
  (op: string) =>
  (d: Draft): void => {
    const { draws } = d;
    const shape = d.shape();
    const dtype = d.anyType();
    const isOfAll = draws.chance(0.4);
    const x = d.tensor(shape, {
      dtype,
      domain: isOfAll && draws.chance(0.5) ? 'any' : 'distinct',
      grad: !isOfAll,
    });
    if (isOfAll) d.call(op, x);
    else d.call(op, x, d.dim(shape.length), keep(d));
  };

const quantile =
  (op: string) =>
  (d: Draft): void => {
    const { draws } = d;
    const dtype = draws.chance(0.05) ? d.anyType() : draws.pick(['float32', 'float64'] as const);
    const shape = d.shape().map((size) => Math.max(1, size));
    // Of equal elements, PyTorch does not define which one gets the gradient.
    const x = draws.chance(0.25)
      ? d.tensor(shape, { dtype, domain: 'special', grad: false })
      : d.tensor(shape, { dtype, domain: 'real' });
    const own = draws.pick([0, 0.25, 0.5, 0.9, 1]);
    const q = draws.chance(0.4)
      ? draws.chance(0.06)
        ? 1.5
        : own
      : d.given(draws.pick([[own], [0.1, own], [own]]), draws.chance(0.8) ? [] : [1], dtype, false);
    if (typeof q !== 'number') {
      const { values } = d.inputs.at(-1)!;
      const isOne = draws.chance(0.3) && values.length === 1;
      d.inputs[d.inputs.length - 1] = { ...d.inputs.at(-1)!, shape: isOne ? [] : [values.length] };
    }
    const interpolation = draws.pick([nothing, 'linear', 'lower', 'higher', 'nearest', 'midpoint']);
    const dim = draws.chance(0.3) ? nothing : d.dim(shape.length);
    d.call(op, x, q, dim, options({ interpolation, keepDim: keep(d) }));
  };

function aminmax(d: Draft): void {
  const [x, dim] = withDim(d);
  d.call('aminmax', x, d.draws.chance(0.4) ? nothing : dim, options({ keepDim: keep(d) }));
}

function stdMean(d: Draft): void {
  const dtype = d.floatType();
  const shape = d.shape();
  const x = d.tensor(shape, { dtype, domain: 'finite' });
  const dims = d.dims(shape.length);
  const correction = d.draws.pick([nothing, 0, 1, 2]);
  d.call(
    'stdMean',
    x,
    Array.isArray(dims) && dims.length === 0 ? nothing : dims,
    options({ correction, keepDim: keep(d) }),
  );
}

function countNonzero(d: Draft): void {
  const shape = d.shape();
  d.call('countNonzero', d.tensor(shape, { dtype: d.anyType(), grad: false }), d.dims(shape.length));
}

const unique =
  (op: string) =>
  (d: Draft): void => {
    const { draws } = d;
    const shape = d.shape(0, 3);
    const hasDim = draws.chance(0.5) && shape.length > 0;
    const x = d.tensor(hasDim ? shape.map((size) => Math.max(1, size)) : shape, {
      dtype: d.anyType(),
      domain: draws.chance(0.15) && !hasDim ? 'special' : [0, 2],
      grad: false,
    });
    d.call(
      op,
      x,
      options({
        returnInverse: flagged(d),
        returnCounts: flagged(d),
        dim: hasDim ? d.dim(shape.length) : nothing,
      }),
    );
  };

function bincount(d: Draft): void {
  const { draws } = d;
  const count = draws.int(0, 6);
  const dtype = draws.chance(0.9) ? draws.pick(['int64', 'int32', 'uint8'] as const) : d.anyType();
  const x = d.tensor(draws.chance(0.05) ? [count, 2] : [count], {
    dtype,
    domain: draws.chance(0.06) && dtype !== 'uint8' ? [-1, 3] : [0, 5],
    grad: false,
  });
  const weights = draws.chance(0.5)
    ? nothing
    : d.tensor([draws.chance(0.06) ? count + 1 : count], {
        dtype: d.anyType(),
        domain: 'finite',
        grad: false,
      });
  d.call('bincount', x, options({ weights, minLength: draws.pick([nothing, 0, 4, 9]) }));
}

function histc(d: Draft): void {
  const { draws } = d;
  const dtype = draws.pick(['float32', 'float64', 'float32', 'int64'] as const);
  const x = d.tensor(d.shape(), { dtype, domain: draws.chance(0.2) ? 'special' : [-4, 6], grad: false });
  const [low, high] = draws.pick([
    [nothing, nothing],
    [0, 0],
    [-2, 6],
    [1, 5],
    [3, 1],
  ]) as [Arg, Arg];
  d.call('histc', x, draws.pick<Arg>([4, 1, 8, 0]), low, high);
}

function diff(d: Draft): void {
  const { draws } = d;
  const shape = d.shape(draws.chance(0.05) ? 0 : 1, 3);
  const dtype = d.anyType();
  const x = d.tensor(shape, { dtype, domain: 'finite' });
  const dim = d.dim(shape.length);
  const own = (): Arg => {
    if (draws.chance(0.6) || shape.length === 0) return nothing;
    const at = dim < 0 ? dim + shape.length : dim;
    return d.tensor(at in shape ? shape.with(at, draws.int(0, 2)) : shape, { dtype, domain: 'finite' });
  };
  d.call(
    'diff',
    x,
    draws.pick([nothing, 0, 1, 1, 2, 3, -1]),
    dim,
    options({ prepend: own(), append: own() }),
  );
}

function trapezoid(d: Draft): void {
  const { draws } = d;
  const shape = d.shape(1, 3).map((size) => Math.max(1, size));
  const dtype = d.anyType();
  const y = d.tensor(shape, { dtype: dtype === 'bool' ? 'float32' : dtype, domain: 'finite' });
  const dim = d.dim(shape.length);
  const x = draws.chance(0.4)
    ? draws.pick<Arg>([nothing, 2, 0.5])
    : d.tensor(draws.chance(0.6) ? [shape.at(dim) ?? 1] : shape, { domain: 'finite' });
  d.call('trapezoid', y, x, dim);
}

function cov(d: Draft): void {
  const { draws } = d;
  const shape = d.shape(0, draws.chance(0.05) ? 3 : 2).map((size) => Math.max(1, size));
  const dtype = d.anyType();
  const x = d.tensor(shape, { dtype: dtype === 'bool' ? 'int32' : dtype, domain: 'finite' });
  // With a gradient, PyTorch refuses weights of a single observation, because it would change a view of a leaf.
  const weights = (types: readonly DType[]): Arg =>
    shape.length === 2 && shape[1]! > 1 && draws.chance(0.5)
      ? d.tensor([shape[1]!], { dtype: draws.pick(types), domain: 'positive' })
      : nothing;
  const correction = draws.pick([nothing, 0, 1, 2]);
  const fweights = weights(['int64', 'int32', 'uint8']);
  d.call('cov', x, options({ correction, fweights, aweights: weights(['float32', 'float64', 'float16']) }));
}

function corrcoef(d: Draft): void {
  const dtype = d.draws.pick(['float32', 'float64'] as const);
  d.call('corrcoef', d.tensor([d.draws.int(1, 3), d.draws.int(3, 5)], { dtype, domain: 'real' }));
}

const orders: readonly Arg[] = [nothing, 2, 1, 3, { $: 'inf' }, 0];

function cdist(d: Draft): void {
  const { draws } = d;
  const dtype = draws.pick(['float32', 'float64'] as const);
  const batch = draws.chance(0.5) ? [] : [draws.int(1, 3)];
  const width = draws.int(1, 3);
  const rows = (): Ref =>
    d.tensor(
      [...(draws.chance(0.2) ? batch.map(() => 1) : batch), draws.int(1, 3), draws.chance(0.03) ? 4 : width],
      {
        dtype,
        domain: 'real',
      },
    );
  d.call('cdist', rows(), rows(), options({ p: draws.pick(orders) }));
}

function pdist(d: Draft): void {
  const dtype = d.draws.pick(['float32', 'float64'] as const);
  const x = d.tensor([d.draws.int(2, 4), d.draws.int(1, 3)], { dtype, domain: 'real', views: false });
  d.call('pdist', x, d.draws.pick(orders));
}

function dist(d: Draft): void {
  const shape = d.shape();
  const dtype = d.floatType();
  const one = (): Ref => d.tensor(d.narrower(shape), { dtype, domain: 'real' });
  d.call('dist', one(), one(), d.draws.pick<Arg>([nothing, 2, 1, 3, { $: 'inf' }]));
}

function normalize(d: Draft): void {
  const shape = d.shape(1);
  const dtype = d.floatType();
  const x = d.tensor(shape, { dtype, domain: 'real' });
  d.call(
    'normalize',
    x,
    options({
      p: d.draws.pick([nothing, 1, 2, 3]),
      dim: d.dim(shape.length),
      eps: d.draws.pick([nothing, 0.5]),
    }),
  );
}

function renorm(d: Draft): void {
  const shape = d.shape(d.draws.chance(0.06) ? 1 : 2).map((size) => Math.max(1, size));
  const dtype = d.draws.pick(['float32', 'float64'] as const);
  const x = d.tensor(shape, { dtype, domain: 'real' });
  d.call('renorm', x, d.draws.pick([1, 2, 3]), d.dim(shape.length), d.draws.pick([0.5, 2, 100]));
}

export const statistics: Makers = {
  searchsorted: { draw: searchsorted, count: 24 },
  bucketize: { draw: bucketize, count: 14 },
  argsort: { draw: argsort, count: 14 },
  msort: { draw: (d) => d.call('msort', d.tensor(d.shape(), { dtype: d.anyType() })) },
  kthvalue: { draw: kthvalue, count: 16 },
  median: { draw: median('median'), count: 20 },
  nanmedian: { draw: median('nanmedian'), count: 20 },
  mode: { draw: (d) => d.call('mode', ...withDim(d, { domain: [0, 2] }), keep(d)), count: 14 },
  quantile: { draw: quantile('quantile'), count: 24 },
  nanquantile: { draw: quantile('nanquantile'), count: 24 },
  cummax: { draw: along('cummax'), count: 16 },
  cummin: { draw: along('cummin'), count: 16 },
  cumprod: { draw: along('cumprod', { domain: 'finite' }), count: 16, isUnsteady: true },
  logcumsumexp: {
    draw: (d) => {
      const dtype = d.floatType();
      const shape = d.shape();
      d.call('logcumsumexp', d.tensor(shape, { dtype, domain: 'finite' }), d.dim(shape.length));
    },
    count: 14,
  },
  amax: { draw: overDims('amax', false), count: 14 },
  amin: { draw: overDims('amin', false), count: 14 },
  aminmax: { draw: aminmax, count: 14 },
  nansum: { draw: overDims('nansum', false), count: 14 },
  nanmean: { draw: overDims('nanmean', true), count: 14 },
  countNonzero: { draw: countNonzero, count: 12 },
  stdMean: { draw: stdMean, isUnsteady: true },
  unique: { draw: unique('unique'), count: 30 },
  uniqueConsecutive: { draw: unique('uniqueConsecutive'), count: 24 },
  bincount: { draw: bincount, count: 18 },
  histc: { draw: histc, count: 18 },
  diff: { draw: diff, count: 20 },
  trapezoid: { draw: trapezoid, count: 16 },
  cov: { draw: cov, count: 30, isUnsteady: true },
  corrcoef: { draw: corrcoef, isUnsteady: true },
  cdist: { draw: cdist, count: 14, isUnsteady: true },
  pdist: { draw: pdist, isUnsteady: true },
  dist: { draw: dist, isUnsteady: true },
  normalize: { draw: normalize, count: 12, isUnsteady: true },
  renorm: { draw: renorm, isUnsteady: true },
};
