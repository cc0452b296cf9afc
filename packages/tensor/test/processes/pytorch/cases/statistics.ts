// Cases of functions that order, count or describe elements.
import type { Arg, Ref } from '../case.ts';
import { allTypes, countOf, type Draft, nothing, type TensorSpec } from '../draft.ts';
import { options } from './arrays.ts';
import type { Makers } from './index.ts';

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

const overDims =
  (op: string, isFloat: boolean) =>
  (d: Draft): void => {
    const dtype = isFloat ? d.floatType() : d.anyType();
    const shape = d.shape();
    const x = d.tensor(shape, { dtype });
    d.call(op, x, d.dims(shape.length), keep(d));
  };

function aminmax(d: Draft): void {
  const [x, dim] = withDim(d);
  d.call('aminmax', x, d.draws.chance(0.4) ? nothing : dim, options({ keepDim: keep(d) }));
}

function countNonzero(d: Draft): void {
  const shape = d.shape();
  d.call('countNonzero', d.tensor(shape, { dtype: d.anyType(), grad: false }), d.dims(shape.length));
}

export const statistics: Makers = {
  searchsorted: { draw: searchsorted, count: 24 },
  bucketize: { draw: bucketize, count: 14 },
  argsort: { draw: argsort, count: 14 },
  msort: { draw: (d) => d.call('msort', d.tensor(d.shape(), { dtype: d.anyType() })) },
  median: { draw: median('median'), count: 20 },
  nanmedian: { draw: median('nanmedian'), count: 20 },
  cummax: { draw: along('cummax'), count: 16 },
  cummin: { draw: along('cummin'), count: 16 },
  cumprod: { draw: along('cumprod', { domain: 'finite' }), count: 16, isUnsteady: true },
  amax: { draw: overDims('amax', false), count: 14 },
  amin: { draw: overDims('amin', false), count: 14 },
  aminmax: { draw: aminmax, count: 14 },
  countNonzero: { draw: countNonzero, count: 12 },
};
