// Cases that read elements and rows by indices.
import type { Ref } from '../../case.ts';
import { type Draft, isFloat, nothing } from '../../draft.ts';
import type { Makers } from '../index.ts';

/** Draws indices into `size` elements; a few are out of range or have a dtype that is refused. */
export function indices(d: Draft, shape: readonly number[], size: number): Ref {
  const { draws } = d;
  const dtype = draws.chance(0.96)
    ? draws.pick(['int64', 'int64', 'int32'] as const)
    : draws.pick(['float32', 'uint8', 'bool'] as const);
  const most = Math.max(0, size - 1);
  return d.tensor(shape, {
    dtype,
    domain: draws.chance(0.05) ? [-2, most] : draws.chance(0.03) ? [0, most + 1] : [0, most],
  });
}

const atLeastOne = (shape: number[]): number[] => shape.map((size) => Math.max(1, size));

function gather(d: Draft): void {
  const { draws } = d;
  const shape = draws.chance(0.85) ? atLeastOne(d.shape()) : d.shape();
  const dim = d.dim(shape.length);
  const at = dim < 0 ? dim + shape.length : dim;
  const own = shape.map((size, i) => (i === at ? d.size() : draws.int(0, size)));
  if (draws.chance(0.04)) own.push(2);
  d.call('gather', d.tensor(shape, { dtype: d.anyType() }), dim, indices(d, own, shape[at] ?? 1));
}

function scatterAdd(d: Draft): void {
  const { draws } = d;
  const shape = atLeastOne(d.shape());
  const dim = d.dim(shape.length);
  const at = dim < 0 ? dim + shape.length : dim;
  const isWhole = draws.chance(0.6);
  const own = shape.map((size, i) => (i === at ? d.size() : isWhole ? size : draws.int(0, size)));
  const source = isWhole ? own : own.map((size) => size + draws.int(0, 1));
  if (own.length > 0 && draws.chance(0.05)) own[0]! += 4;
  if (source.some((size, d) => size !== own[d])) d.tags.add('smaller index');
  const dtype = d.anyType();
  const x = d.tensor(shape, { dtype });
  const index = indices(d, own, shape[at] ?? 1);
  d.call('scatterAdd', x, dim, index, d.tensor(source, { dtype: draws.chance(0.95) ? dtype : d.anyType() }));
}

function indexSelect(d: Draft): void {
  const { draws } = d;
  const shape = draws.chance(0.85) ? atLeastOne(d.shape()) : d.shape();
  const dim = d.dim(shape.length);
  const count = draws.chance(0.9) ? [d.size()] : draws.pick([[], [2, 2]]);
  d.call('indexSelect', d.tensor(shape, { dtype: d.anyType() }), dim, indices(d, count, shape.at(dim) ?? 1));
}

function embedding(d: Draft): void {
  const rows = d.draws.int(1, 5);
  const dtype = d.anyType();
  const weight = d.tensor(d.draws.chance(0.95) ? [rows, d.size()] : [rows], { dtype, grad: isFloat(dtype) });
  d.call('embedding', indices(d, d.shape(0, 3), rows), weight);
}

function oneHot(d: Draft): void {
  const classes = d.draws.int(1, 5);
  const labels = indices(d, d.shape(0, 3), classes);
  d.call('oneHot', labels, d.draws.chance(0.75) ? classes : d.draws.pick([nothing, 0, classes + 2]));
}

export const lookups: Makers = {
  gather: { draw: gather, count: 18 },
  scatterAdd: { draw: scatterAdd, count: 18 },
  indexSelect: { draw: indexSelect, count: 14 },
  embedding: { draw: embedding, count: 12 },
  oneHot: { draw: oneHot, count: 12 },
};
