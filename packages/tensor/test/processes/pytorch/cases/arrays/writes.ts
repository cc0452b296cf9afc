// Cases that write to parts of tensors: copies, and forms in place.
import type { Arg, Ref } from '../../case.ts';
import { type Draft, nothing } from '../../draft.ts';
import type { Makers } from '../index.ts';
import { indices } from './lookups.ts';

const atLeastOne = (shape: number[]): number[] => shape.map((size) => Math.max(1, size));
const countOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** Draws positions in a dimension; places that are named twice only with `mayRepeat`, because their order is open. */
function places(d: Draft, count: number, size: number, mayRepeat: boolean): Ref {
  const { draws } = d;
  if (mayRepeat) return indices(d, [count], size);
  const all = draws.shuffled(Array.from({ length: size }, (_, i) => i)).slice(0, count);
  return d.given(all, [all.length], draws.pick(['int64', 'int64', 'int32'] as const), false);
}

const from = (d: Draft, shape: readonly number[], dtype: ReturnType<Draft['anyType']>): Ref =>
  d.draws.chance(0.95)
    ? d.tensor(shape, { dtype, domain: 'finite' })
    : d.tensor(shape, { dtype: d.anyType(), domain: 'finite', grad: false });

/** What differs between a copy and a form that writes in place: the first operand, and the call. */
type Form = 'copy' | 'in place';
const self = (d: Draft, form: Form, shape: readonly number[], dtype: ReturnType<Draft['anyType']>): Ref =>
  d.tensor(shape, {
    dtype,
    domain: 'finite',
    ...(form === 'in place' ? { grad: false, repeats: false } : {}),
  });
const run = (d: Draft, form: Form, op: string, ...args: readonly Arg[]): void =>
  form === 'copy' ? d.call(op, ...args) : d.callInPlace(`${op}_`, ...args);

const put =
  (form: Form) =>
  (d: Draft): void => {
    const { draws } = d;
    const dtype = d.anyType();
    const shape = atLeastOne(d.shape());
    const x = self(d, form, shape, dtype);
    const accumulate = draws.chance(0.4) && dtype !== 'bool';
    const count = Math.min(countOf(shape), draws.int(1, 4));
    const index = places(d, count, countOf(shape), accumulate);
    const source = from(d, [draws.chance(0.95) ? count : count + 1], dtype);
    run(d, form, 'put', x, index, source, ...(accumulate ? [true] : []));
  };

const maskedScatter =
  (form: Form) =>
  (d: Draft): void => {
    const { draws } = d;
    const dtype = d.anyType();
    const shape = d.shape();
    const x = self(d, form, form === 'copy' ? d.narrower(shape) : shape, dtype);
    const mask = d.tensor(form === 'copy' ? shape : d.narrower(shape), {
      dtype: draws.chance(0.95) ? 'bool' : 'float32',
      grad: false,
    });
    const count = draws.chance(0.93) ? Math.max(1, countOf(shape) + draws.int(0, 2)) : 1;
    run(d, form, 'maskedScatter', x, mask, from(d, [count], dtype));
  };

interface Slices {
  readonly dtype: ReturnType<Draft['anyType']>;
  readonly shape: number[];
  readonly dim: number;
  readonly along: number;
  readonly x: Ref;
}

function sliced(d: Draft, form: Form): Slices {
  const dtype = d.anyType();
  const shape = atLeastOne(d.shape(1));
  const dim = d.dim(shape.length);
  return { dtype, shape, dim, along: dim < 0 ? dim + shape.length : dim, x: self(d, form, shape, dtype) };
}

function indexReduce(d: Draft): void {
  const { draws } = d;
  const { dtype, shape, dim, along, x } = sliced(d, 'copy');
  const count = draws.int(1, 3);
  const index = d.tensor([count], {
    dtype: draws.pick(['int64', 'int32'] as const),
    domain: [0, Math.max(0, (shape[along] ?? 1) - 1)],
  });
  const own = shape.map((size, i) => (i === along ? count : size));
  const reduce = draws.pick(['prod', 'mean', 'amax', 'amin']);
  const without = draws.chance(0.35);
  if (without && reduce.startsWith('am')) d.tags.add('without self');
  if (dtype === 'bool') d.tags.add('bool');
  if (dtype === 'uint8' && reduce === 'mean') d.tags.add('mean of uint8');
  const source = from(d, own, dtype);
  d.call('indexReduce', x, dim, index, source, reduce, without ? { includeSelf: false } : nothing);
}

const byIndex =
  (op: 'scatter_' | 'scatterAdd_' | 'indexAdd_' | 'indexCopy_' | 'indexFill_') =>
  (d: Draft): void => {
    const { draws } = d;
    const { dtype, shape, dim, along, x } = sliced(d, 'in place');
    const size = shape[along] ?? 1;
    const count = draws.int(1, size);
    const own = shape.map((each, i) => (i === along ? count : each));
    if (op.startsWith('scatter')) {
      const index = d.tensor(own, {
        dtype: 'int64',
        domain: op === 'scatterAdd_' ? [0, size - 1] : [draws.int(0, size - 1), size - 1],
        views: false,
      });
      // With one place the last one stays, so all write the same number.
      const source: Arg = op === 'scatter_' ? draws.pick([0, 1, 2]) : from(d, own, dtype);
      d.callInPlace(op, x, dim, index, source);
      return;
    }
    const index = places(d, count, size, op !== 'indexCopy_');
    if (op === 'indexFill_') d.callInPlace(op, x, dim, index, draws.pick([0, 1, 2]));
    else d.callInPlace(op, x, dim, index, from(d, own, dtype));
  };

function selectScatter(d: Draft): void {
  const { draws } = d;
  const { dtype, shape, dim, along, x } = sliced(d, 'copy');
  const own = shape.filter((_, i) => i !== along);
  const source = from(d, draws.chance(0.05) ? [...own, 2] : own, dtype);
  d.call('selectScatter', x, source, dim, draws.int(-1, Math.max(0, (shape[along] ?? 1) - 1)));
}

function sliceScatter(d: Draft): void {
  const { draws } = d;
  const { dtype, shape, dim, along, x } = sliced(d, 'copy');
  const size = shape[along] ?? 1;
  const [start, step] = [draws.int(0, size - 1), draws.int(1, 2)];
  const end = draws.pick([null, size, size + 3]);
  const count = Math.ceil((size - start) / step);
  const own = shape.map((each, i) => (i === along ? count : each));
  const from0 = start === 0 && draws.chance(0.5) ? null : start;
  const source = from(d, draws.chance(0.05) ? [...own, 2] : own, dtype);
  d.call('sliceScatter', x, source, dim, from0, end, step);
}

function diagonalScatter(d: Draft): void {
  const { draws } = d;
  const dtype = d.anyType();
  const shape = [draws.int(1, 4), draws.int(1, 4), ...draws.pick([[], [2]])];
  const offset = draws.int(-1, 1);
  const size = Math.min(shape[0]! + Math.min(0, offset), shape[1]! - Math.max(0, offset));
  const x = self(d, 'copy', shape, dtype);
  const own = [...shape.slice(2), Math.max(0, size) + Number(draws.chance(0.05))];
  d.call('diagonalScatter', x, from(d, own, dtype), offset, 0, 1);
}

function sumToSize(d: Draft): void {
  const dtype = d.anyType();
  const shape = d.shape();
  d.call('sumToSize', d.tensor(shape, { dtype, domain: 'finite' }), d.narrower(shape));
}

function broadcastShapes(d: Draft): void {
  const shape = d.shape();
  d.call('broadcastShapes', d.narrower(shape), d.narrower(shape), d.narrower(shape));
}

export const writes: Makers = {
  put: { draw: put('copy'), count: 20 },
  put_: { draw: put('in place'), count: 10 },
  maskedScatter: { draw: maskedScatter('copy'), count: 20 },
  maskedScatter_: { draw: maskedScatter('in place'), count: 10 },
  indexReduce: { draw: indexReduce, count: 40 },
  ...Object.fromEntries(
    (['scatter_', 'scatterAdd_', 'indexAdd_', 'indexCopy_', 'indexFill_'] as const).map((op) => [
      op,
      { draw: byIndex(op), count: 12 },
    ]),
  ),
  selectScatter: { draw: selectScatter, count: 14 },
  sliceScatter: { draw: sliceScatter, count: 16 },
  diagonalScatter: { draw: diagonalScatter, count: 14 },
  sumToSize: { draw: sumToSize, count: 14 },
  broadcastShapes: { draw: broadcastShapes, count: 8 },
};
