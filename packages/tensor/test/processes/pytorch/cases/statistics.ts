// Cases of functions that order, count or describe elements.
import type { Arg, Ref } from '../case.ts';
import { allTypes, countOf, type Draft, nothing } from '../draft.ts';
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

export const statistics: Makers = {
  searchsorted: { draw: searchsorted, count: 24 },
  bucketize: { draw: bucketize, count: 14 },
};
