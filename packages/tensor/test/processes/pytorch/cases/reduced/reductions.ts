// Cases of reductions, and of ops that go along a dimension in order, such as cumsum.
import type { Arg } from '../../case.ts';
import { type Draft, nothing } from '../../draft.ts';
import type { Makers } from '../index.ts';

const keep = (d: Draft): Arg => d.draws.pick([nothing, false, true]);

export const overDims =
  (op: string, isFloat: boolean) =>
  (d: Draft): void => {
    const dtype = isFloat ? d.floatType() : d.anyType();
    const shape = d.shape();
    const x = d.tensor(shape, { dtype });
    d.call(op, x, d.dims(shape.length), keep(d));
  };

const overOne =
  (op: string) =>
  (d: Draft): void => {
    const shape = d.shape();
    const x = d.tensor(shape, { dtype: d.anyType() });
    d.call(op, x, d.draws.chance(0.25) ? nothing : d.dim(shape.length), keep(d));
  };

/** Returns the options that are not undefined. */
function options(entries: Readonly<Record<string, Arg>>): Arg {
  const own = Object.entries(entries).filter(([, value]) => value !== nothing);
  return own.length === 0 ? nothing : Object.fromEntries(own);
}

const spread =
  (op: string) =>
  (d: Draft): void => {
    const dtype = d.floatType();
    const shape = d.shape();
    const x = d.tensor(shape, { dtype });
    const correction = d.draws.pick([nothing, 0, 1, 2]);
    d.call(op, x, d.dims(shape.length), options({ correction, keepDim: keep(d) }));
  };

function norm(d: Draft): void {
  const dtype = d.floatType();
  const shape = d.shape();
  const x = d.tensor(shape, { dtype });
  const p = d.draws.pick<Arg>([nothing, 2, 1, 3, 0.5, 2.5, 0, -1, { $: 'inf' }, { $: '-inf' }]);
  d.call('norm', x, d.dims(shape.length), options({ p, keepDim: keep(d) }));
}

function logSumExp(d: Draft): void {
  const dtype = d.floatType();
  const shape = d.shape();
  const x = d.tensor(shape, { dtype });
  const dims = d.dims(shape.length);
  d.call('logSumExp', x, dims === nothing ? -1 : dims, keep(d));
}

const along =
  (op: string, isFloat: boolean) =>
  (d: Draft): void => {
    const dtype = isFloat ? d.floatType() : d.anyType();
    const shape = d.shape();
    const x = d.tensor(shape, { dtype });
    d.call(op, x, d.dim(shape.length));
  };

function topk(d: Draft): void {
  const shape = d.shape();
  const dtype = d.anyType();
  // PyTorch does not define which of equal elements it takes, so no two are equal.
  const x = d.tensor(shape, { dtype: dtype === 'bool' ? 'int32' : dtype, domain: 'distinct' });
  const dim = d.dim(shape.length);
  const k = d.draws.int(0, (shape.at(dim) ?? 1) + Number(d.draws.chance(0.06)));
  d.call('topk', x, k, dim, options({ largest: d.draws.pick([nothing, true, false]) }));
}

function sort(d: Draft): void {
  const shape = d.shape();
  const x = d.tensor(shape, { dtype: d.anyType() });
  d.call('sort', x, d.dim(shape.length), options({ descending: d.draws.pick([nothing, true, false]) }));
}

const triangle =
  (op: string) =>
  (d: Draft): void => {
    const x = d.tensor(d.shape(d.draws.chance(0.06) ? 1 : 2), { dtype: d.anyType() });
    d.call(op, x, d.draws.pick([nothing, 0, 1, -1, 2, -3, 9]));
  };

export const reductions: Makers = {
  sum: { draw: overDims('sum', false), count: 18 },
  mean: { draw: overDims('mean', true), count: 14 },
  prod: { draw: overDims('prod', false), count: 18 },
  max: { draw: overDims('max', false), count: 18 },
  min: { draw: overDims('min', false), count: 18 },
  any: { draw: overDims('any', false) },
  all: { draw: overDims('all', false) },
  argmax: { draw: overOne('argmax'), count: 14 },
  argmin: { draw: overOne('argmin'), count: 14 },
  variance: { draw: spread('variance'), count: 18, isUnsteady: true },
  std: { draw: spread('std'), count: 18, isUnsteady: true },
  varMean: { draw: spread('varMean'), isUnsteady: true },
  norm: { draw: norm, count: 30 },
  logSumExp: { draw: logSumExp, count: 14 },
  softmax: { draw: along('softmax', true), count: 14 },
  softmin: { draw: along('softmin', true), count: 12 },
  logSoftmax: { draw: along('logSoftmax', true), count: 14 },
  cumsum: { draw: along('cumsum', false) },
  sort: { draw: sort, count: 14 },
  topk: { draw: topk, count: 14 },
  tril: { draw: triangle('tril') },
  triu: { draw: triangle('triu') },
};
