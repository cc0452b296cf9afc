// Cases that read and write by index tensors and masks.
import type { Arg, Ref } from '../../case.ts';
import { allTypes, type Draft, isFloat, nothing } from '../../draft.ts';
import type { Makers } from '../index.ts';
import { indices } from './lookups.ts';

const atLeastOne = (shape: number[]): number[] => shape.map((size) => Math.max(1, size));

const mask = (d: Draft, shape: readonly number[]): Ref =>
  d.tensor(shape, { dtype: d.draws.chance(0.95) ? 'bool' : 'float32', grad: false });

/** Returns one of the shapes that broadcast to a drawn one, the same for all index tensors of a case. */
function indexShape(d: Draft, joint: readonly number[]): number[] {
  const dropped = d.draws.chance(0.3) ? d.draws.int(0, joint.length) : 0;
  return joint.slice(dropped).map((size) => (d.draws.chance(0.2) ? 1 : size));
}

/** Draws positions of `size` elements, also from the end; a few are out of range or of a dtype that is refused. */
function places(d: Draft, shape: readonly number[], size: number): Ref {
  const { draws } = d;
  const dtype = draws.chance(0.97) ? draws.pick(['int64', 'int64', 'int32'] as const) : 'float32';
  return d.tensor(shape, {
    dtype,
    domain: draws.chance(0.05) ? [-size - 1, size] : [-size, Math.max(0, size - 1)],
  });
}

/**
 * Draws a list of indices for `shape` with at least one tensor. `onlyTensors`: beside ':' and '...'. Behind a mask of
 * two dimensions there is no number, range or null: PyTorch applies these to another dimension (docs/tensor.md).
 */
function list(d: Draft, shape: readonly number[], onlyTensors = false): Arg[] {
  const { draws } = d;
  const joint = d.shape(0, 2);
  const out: Arg[] = [];
  const kept = draws.int(1, Math.max(1, shape.length));
  let isBehind = onlyTensors;
  for (let dim = 0; dim < Math.min(kept, shape.length); dim++) {
    const size = shape[dim]!;
    const kind = draws.uniform();
    if (kind < 0.5) {
      const own = indexShape(d, joint);
      out.push(places(d, isBehind && own.length === 0 ? [1] : own, size));
    } else if (kind < 0.6 && dim + 1 < shape.length) {
      out.push(mask(d, [size, shape[++dim]!]));
      isBehind = true;
    } else if (kind < 0.7) out.push(mask(d, [draws.chance(0.96) ? size : size + 1]));
    else if (kind < 0.85 || isBehind) out.push(':');
    else if (kind < 0.93) out.push(size > 0 ? draws.int(-size, size - 1) : ':');
    else out.push([draws.int(0, size), null, draws.int(1, 2)]);
  }
  if (draws.chance(0.2)) out.splice(draws.int(0, out.length), 0, '...');
  if (!isBehind && draws.chance(0.15)) out.splice(draws.int(0, out.length), 0, null);
  return out;
}

function at(d: Draft): void {
  const shape = d.draws.chance(0.9) ? atLeastOne(d.shape(1)) : d.shape();
  const x = d.tensor(shape, { dtype: d.anyType() });
  d.call('at', x, ...list(d, shape));
}

function put(op: 'set' | 'indexPut') {
  return (d: Draft): void => {
    const { draws } = d;
    const shape = atLeastOne(d.shape(1, 3));
    const dtype = d.anyType();
    const x = d.tensor(shape, { dtype, grad: op === 'indexPut', domain: 'distinct' });
    const own = list(d, shape, true);
    const isRow = draws.chance(0.3);
    const value = draws.chance(0.5)
      ? draws.pick([0, 1, 3])
      : d.tensor(isRow ? [draws.int(1, 3)] : [], {
          dtype: isRow ? d.beside(dtype, allTypes) : dtype,
          grad: op === 'indexPut' && isFloat(dtype),
        });
    const accumulate: Arg = draws.chance(0.4) && dtype !== 'bool' ? { accumulate: true } : nothing;
    if (op === 'set') d.callInPlace(op, x, own, value, ...(accumulate === nothing ? [] : [accumulate]));
    else d.call(op, x, own, value, accumulate);
  };
}

/** Draws a tensor, a dimension, an index and a source, for operations with an index for each element. */
function scattered(d: Draft): { x: Ref; dim: number; index: Ref; source: Ref; dtype: string; own: number[] } {
  const { draws } = d;
  const dtype = d.anyType();
  const shape = atLeastOne(d.shape());
  const dim = d.dim(shape.length);
  const along = dim < 0 ? dim + shape.length : dim;
  const isWhole = draws.chance(0.7);
  const own = shape.map((size, i) =>
    i === along ? Math.max(1, d.size()) : isWhole ? size : draws.int(1, size),
  );
  const x = d.tensor(shape, { dtype, domain: 'finite' });
  const index = indices(d, own, shape[along] ?? 1);
  const source = d.tensor(own, { dtype: draws.chance(0.96) ? dtype : d.anyType(), domain: 'finite' });
  return { x, dim, index, source, dtype, own };
}

function scatter(d: Draft): void {
  const { x, dim, index, source } = scattered(d);
  d.call('scatter', x, dim, index, d.draws.chance(0.25) ? d.draws.pick([0, 1, 2]) : source);
}

function scatterReduce(d: Draft): void {
  const { draws } = d;
  const { x, dim, index, source, dtype } = scattered(d);
  const reduce = draws.pick(['sum', 'prod', 'mean', 'amax', 'amin']);
  const without = draws.chance(0.35);
  if (without && reduce.startsWith('am')) d.tags.add('without self');
  if (dtype === 'bool') d.tags.add('bool');
  if (dtype === 'uint8' && reduce === 'mean') d.tags.add('mean of uint8');
  d.call('scatterReduce', x, dim, index, source, reduce, without ? { includeSelf: false } : nothing);
}

function slices(op: 'indexAdd' | 'indexCopy' | 'indexFill') {
  return (d: Draft): void => {
    const { draws } = d;
    const dtype = d.anyType();
    const shape = atLeastOne(d.shape());
    const dim = d.dim(shape.length);
    const along = dim < 0 ? dim + shape.length : dim;
    const count = Math.max(1, d.size());
    const x = d.tensor(shape, { dtype });
    const index = indices(d, [count], shape[along] ?? 1);
    if (op === 'indexFill') {
      d.call(
        op,
        x,
        dim,
        index,
        draws.chance(0.6) ? draws.pick([0, 1, 2]) : d.tensor([], { dtype, grad: false }),
      );
      return;
    }
    const given = draws.chance(0.95) ? count : count + 1;
    const source = d.tensor(
      shape.length === 0 ? [given] : shape.map((size, i) => (i === along ? given : size)),
      {
        dtype: draws.chance(0.95) ? dtype : d.anyType(),
      },
    );
    const alpha: Arg = op === 'indexAdd' && draws.chance(0.3) && dtype !== 'bool' ? { alpha: 2 } : nothing;
    d.call(op, x, dim, index, source, alpha);
  };
}

function takeAlongDim(d: Draft): void {
  const { draws } = d;
  const shape = atLeastOne(d.shape(1));
  const dim = d.dim(shape.length);
  const along = dim < 0 ? dim + shape.length : dim;
  const own = shape.map((size, i) => (i === along ? Math.max(1, d.size()) : draws.chance(0.3) ? 1 : size));
  const isFlat = draws.chance(0.2);
  // Without a dimension, PyTorch refuses tensors with strides.
  const x = d.tensor(shape, { dtype: d.anyType(), views: !isFlat });
  if (isFlat) {
    const count = shape.reduce((a, b) => a * b, 1);
    const values = Array.from({ length: 4 }, () => draws.int(0, count - 1));
    d.call('takeAlongDim', x, d.given(values, [2, 2], 'int64'));
    return;
  }
  const size = shape[along] ?? 1;
  const index = indices(d, own, size);
  const isInside = (at: number | string): boolean => Number(at) >= -size && Number(at) < size;
  if (!d.inputs.at(-1)!.values.every(isInside)) d.tags.add('index out of range');
  d.call('takeAlongDim', x, index, dim);
}

function take(d: Draft): void {
  const shape = atLeastOne(d.shape());
  const x = d.tensor(shape, { dtype: d.anyType() });
  d.call(
    'take',
    x,
    indices(
      d,
      d.shape(0, 3),
      shape.reduce((a, b) => a * b, 1),
    ),
  );
}

function maskedSelect(d: Draft): void {
  const shape = d.shape();
  // PyTorch 1.13 gives the gradient of a tensor with strides in another order.
  const x = d.tensor(shape, { dtype: d.anyType(), views: false });
  d.call('maskedSelect', x, mask(d, d.narrower(shape)));
}

const positions = (op: string) => (d: Draft) =>
  d.call(op, d.tensor(d.shape(), { dtype: d.anyType(), grad: false }));

export const indexing: Makers = {
  atTensors: { draw: at, count: 90 },
  indexPut: { draw: put('indexPut'), count: 40 },
  set: { draw: put('set'), count: 40 },
  scatter: { draw: scatter, count: 24 },
  scatterReduce: { draw: scatterReduce, count: 60 },
  indexAdd: { draw: slices('indexAdd'), count: 18 },
  indexCopy: { draw: slices('indexCopy'), count: 18 },
  indexFill: { draw: slices('indexFill'), count: 14 },
  takeAlongDim: { draw: takeAlongDim, count: 16 },
  take: { draw: take, count: 14 },
  maskedSelect: { draw: maskedSelect, count: 16 },
  nonzero: { draw: positions('nonzero'), count: 12 },
  whereTrue: { draw: positions('where'), count: 12 },
};
