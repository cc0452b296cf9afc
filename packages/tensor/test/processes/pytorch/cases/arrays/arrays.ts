// Cases of functions that make arrays like others, compare them, and rearrange their elements.
import type { Arg, Ref } from '../../case.ts';
import { allTypes, countOf, type Draft, floats, isFloat, nothing } from '../../draft.ts';
import type { Maker, Makers } from '../index.ts';

const anyTensor = (d: Draft, shape = d.shape()): Ref => d.tensor(shape, { dtype: d.anyType() });

/** Returns the options that are not left out; nothing if there are none. */
export function options(entries: Readonly<Record<string, Arg>>): Arg {
  const own = Object.entries(entries).filter(([, value]) => value !== nothing);
  return own.length === 0 ? nothing : Object.fromEntries(own);
}

const typed = (d: Draft): Arg => options({ dtype: d.draws.chance(0.4) ? nothing : d.anyType() });

/** Makers that compare only dtype and shape, because elements are random or not set. */
const kindOnly = (draw: (d: Draft) => void): Maker => ({
  draw: (d) => {
    d.compares = 'kind';
    draw(d);
  },
  count: 8,
});

const like = (d: Draft): Ref => d.tensor(d.shape(), { dtype: d.anyType(), grad: false });

function logspace(d: Draft): void {
  const { draws } = d;
  const base = draws.pick([nothing, 2, 0.5, 1]);
  const dtype = draws.pick<Arg>([nothing, 'float64', 'int32', 'float16']);
  const [start, end] = [draws.int(-1, 2), draws.int(0, 3)];
  // Integers drop fractions, which rounding errors decide, so that all exponents are integers.
  const count = dtype === 'int32' ? Math.abs(end - start) + 1 : draws.int(draws.chance(0.1) ? -1 : 0, 5);
  d.call('logspace', start, end, count, options({ base, dtype }));
}

function randintLike(d: Draft): void {
  const [low, high] = d.draws.pick([
    [0, 2],
    [-3, 4],
    [5, 5],
    [0, 300],
  ]);
  d.call('randintLike', like(d), low!, high!);
}

function normal(d: Draft): void {
  const { draws } = d;
  const shape = d.shape();
  const dtype = d.floatType();
  const part = (): Arg =>
    draws.chance(0.3)
      ? draws.pick([0, 1.5])
      : d.tensor(d.narrower(shape), { dtype: draws.pick(floats), domain: 'positive', grad: false });
  d.call('normal', d.tensor(shape, { dtype, domain: 'positive', grad: false }), part());
}

function allclose(d: Draft): void {
  const { draws } = d;
  const dtype = d.anyType();
  const shape = d.shape();
  const x = d.tensor(shape, { dtype, domain: draws.chance(0.3) ? 'special' : [0, 1], views: false });
  const { values } = d.inputs[0]!;
  const moved = values.map((value) =>
    isFloat(dtype) && typeof value === 'number' ? value + draws.pick([0, 0, 0, 0.0625]) : value,
  );
  const other = draws.chance(0.1)
    ? d.tensor(shape, { dtype: d.beside(dtype, allTypes, 0.5) })
    : d.given(moved, shape, dtype);
  const wide = options({
    rtol: draws.pick([nothing, 0, 0.25]),
    atol: draws.pick<Arg>([nothing, 0, 0.125, { $: 'nan' }]),
    equalNan: draws.pick([nothing, true, false]),
  });
  d.call('allclose', x, other, wide);
}

function equal(d: Draft): void {
  const { draws } = d;
  const shape = d.shape();
  const x = d.tensor(shape, { dtype: d.anyType(), domain: [0, 1], views: false });
  const isSame = draws.chance(0.6);
  const own = draws.chance(0.15) ? [...shape, 1] : shape;
  const { values } = d.inputs[0]!;
  d.call(
    'equal',
    x,
    isSame ? d.given(values, own, d.anyType()) : d.tensor(own, { dtype: d.anyType(), domain: [0, 1] }),
  );
}

function isin(d: Draft): void {
  const { draws } = d;
  const number = draws.uniform();
  const x = number < 0.12 ? draws.pick([0, 1, 2.5]) : anyTensor(d);
  // Many elements are sorted and searched, few compared one by one.
  const others =
    number > 0.9
      ? draws.pick([0, 1, 2.5])
      : anyTensor(d, draws.chance(0.4) ? [draws.int(17, 40)] : d.shape(0, 2));
  d.call('isin', x, others, options({ invert: draws.pick([nothing, true, false]) }));
}

function meshgrid(d: Draft): void {
  const { draws } = d;
  const dtype = d.anyType();
  const tensors = Array.from({ length: draws.int(draws.chance(0.1) ? 0 : 1, 3) }, () =>
    d.tensor(draws.chance(0.15) ? [] : draws.chance(0.04) ? [1, 2] : [d.size()], {
      dtype: d.beside(dtype, allTypes),
    }),
  );
  d.call('meshgrid', tensors, options({ indexing: draws.pick([nothing, 'ij', 'xy']) }));
}

function tile(d: Draft): void {
  const x = anyTensor(d, d.shape(0, 3));
  d.call(
    'tile',
    x,
    Array.from({ length: d.draws.int(0, 4) }, () =>
      d.draws.pick([0, 1, 1, 2, 2, -1].slice(0, 6 - Number(!d.draws.chance(0.1)))),
    ),
  );
}

function repeatInterleave(d: Draft): void {
  const { draws } = d;
  const shape = d.shape(0, 3);
  const x = anyTensor(d, shape);
  const dim = draws.chance(0.3) ? nothing : d.dim(shape.length);
  const size = typeof dim === 'number' ? (shape.at(dim) ?? 1) : countOf(shape);
  const repeats = draws.chance(0.4)
    ? draws.int(draws.chance(0.1) ? -1 : 0, 3)
    : d.tensor([draws.chance(0.1) ? size + 1 : draws.chance(0.15) ? 1 : size], {
        dtype: draws.chance(0.95) ? draws.pick(['int64', 'int32'] as const) : 'float32',
        domain: draws.chance(0.05) ? [-1, 1] : [0, 3],
        grad: false,
      });
  d.call('repeatInterleave', x, repeats, dim);
}

function movedim(d: Draft): void {
  const { draws } = d;
  const shape = d.shape();
  const x = anyTensor(d, shape);
  if (draws.chance(0.4)) d.call('movedim', x, d.dim(shape.length), d.dim(shape.length));
  else {
    const order = draws.shuffled(shape.map((_, dim) => dim));
    const count = draws.int(0, shape.length);
    const places = draws.shuffled(shape.map((_, dim) => dim - shape.length)).slice(0, count);
    d.call('movedim', x, order.slice(0, count), draws.chance(0.06) ? [...places, 0] : places);
  }
}

function unfold(d: Draft): void {
  const { draws } = d;
  const shape = d.shape(0, 3);
  const x = anyTensor(d, shape);
  const dim = d.dim(shape.length);
  const size = shape.at(dim) ?? 1;
  const window = draws.int(0, size + Number(draws.chance(0.06)));
  d.steps.push({
    op: 'unfold',
    via: 'method',
    args: [x, dim, window, draws.int(draws.chance(0.06) ? 0 : 1, 3)],
  });
}

function rot90(d: Draft): void {
  const { draws } = d;
  const shape = d.shape(draws.chance(0.1) ? 1 : 2);
  const x = anyTensor(d, shape);
  const dims = draws.chance(0.4)
    ? nothing
    : draws.shuffled(shape.map((_, dim) => (draws.chance(0.3) ? dim - shape.length : dim))).slice(0, 2);
  d.call('rot90', x, draws.pick([nothing, 0, 1, 2, 3, -1, 5]), draws.chance(0.05) ? [0, 0] : dims);
}

const plain = (op: string, least = 0): Maker => ({
  draw: (d) => d.call(op, anyTensor(d, d.shape(d.draws.chance(0.1) ? 0 : least))),
});

const stacks = (op: string): Maker => ({
  draw: (d) => {
    const { draws } = d;
    const shape = d.shape(0, 3);
    const dtype = d.anyType();
    const list = Array.from({ length: draws.int(draws.chance(0.05) ? 0 : 1, 3) }, () => {
      const own = [...shape];
      if (own.length > 0 && draws.chance(0.15)) own[draws.int(0, own.length - 1)] = 2;
      return d.tensor(own, { dtype: draws.chance(0.8) ? dtype : d.anyType() });
    });
    d.call(op, list);
  },
});

/** Draws a number of parts, or positions between them, also in an order that makes empty parts. */
function sections(d: Draft, size: number): Arg {
  const { draws } = d;
  if (draws.chance(0.5)) return draws.int(draws.chance(0.1) ? 0 : 1, 4);
  return Array.from({ length: draws.int(0, 3) }, () => draws.int(-size - 1, size + 1));
}

function tensorSplit(d: Draft): void {
  const { draws } = d;
  const shape = d.shape(draws.chance(0.06) ? 0 : 1, 3);
  const x = anyTensor(d, shape);
  const dim = d.dim(shape.length);
  const given = sections(d, shape.at(dim) ?? 1);
  const isTensor = draws.chance(0.3);
  const own: Arg = !isTensor
    ? given
    : typeof given === 'number'
      ? d.given([given], [], 'int64', false)
      : d.given(given as number[], [(given as number[]).length], 'int64', false);
  d.call('tensorSplit', x, own, dim);
}

const splits = (op: string, least: number, dim: number): Maker => ({
  draw: (d) => {
    const shape = d.shape(d.draws.chance(0.1) ? 0 : least, Math.max(3, least));
    d.call(op, anyTensor(d, shape), sections(d, shape[dim] ?? 1));
  },
});

const asOther = (op: string): Maker => ({
  draw: (d) => {
    const { draws } = d;
    const shape = d.shape(0, 3);
    const x = anyTensor(d, op === 'expandAs' ? d.narrower(shape) : draws.shuffled(shape));
    d.call(op, x, d.tensor(draws.chance(0.05) ? [...shape, 2] : shape, { grad: false }));
  },
});

function cartesianProd(d: Draft): void {
  const { draws } = d;
  const dtype = d.anyType();
  const tensors = Array.from({ length: draws.int(draws.chance(0.1) ? 0 : 1, 3) }, () =>
    d.tensor(draws.chance(0.04) ? [] : [d.size()], { dtype: d.beside(dtype, allTypes, 0.03) }),
  );
  d.call('cartesianProd', ...tensors);
}

function combinations(d: Draft): void {
  const { draws } = d;
  const x = anyTensor(d, draws.chance(0.05) ? [2, 2] : [d.size()]);
  const withReplacement = draws.pick([nothing, true, false]);
  d.call('combinations', x, draws.pick([nothing, 0, 1, 2, 3, -1]), options({ withReplacement }));
}

const shapeFirst =
  (op: string, ...rest: readonly Arg[]) =>
  (d: Draft): void => {
    d.steps.push({
      op,
      via: 'method',
      args: [like(d), d.shape(), ...rest, ...[typed(d)].filter((o) => o !== nothing)],
    });
  };

export const arrays: Makers = {
  empty: kindOnly((d) => d.call('empty', d.draws.chance(0.1) ? [-1] : d.shape(), typed(d))),
  emptyLike: kindOnly((d) => d.call('emptyLike', like(d), typed(d))),
  fullLike: { draw: (d) => d.call('fullLike', like(d), d.draws.pick([0, 1, 3, 2.5]), typed(d)) },
  newZeros: { draw: shapeFirst('newZeros'), count: 5 },
  newOnes: { draw: shapeFirst('newOnes'), count: 5 },
  newFull: { draw: shapeFirst('newFull', 3), count: 5 },
  newEmpty: { ...kindOnly(shapeFirst('newEmpty')), count: 5 },
  logspace: { draw: logspace, count: 14 },
  randLike: kindOnly((d) => d.call('randLike', d.tensor(d.shape(), { dtype: d.draws.pick(floats) }))),
  randnLike: kindOnly((d) => d.call('randnLike', d.tensor(d.shape(), { dtype: d.draws.pick(floats) }))),
  randintLike: { ...kindOnly(randintLike), count: 12 },
  normal: { ...kindOnly(normal), count: 12 },
  allclose: { draw: allclose, count: 24 },
  equal: { draw: equal, count: 14 },
  isin: { draw: isin, count: 24 },
  meshgrid: { draw: meshgrid, count: 14 },
  tile: { draw: tile, count: 12 },
  repeatInterleave: { draw: repeatInterleave, count: 24 },
  movedim: { draw: movedim, count: 14 },
  swapaxes: {
    draw: (d) => {
      const shape = d.shape();
      d.call('swapaxes', anyTensor(d, shape), d.dim(shape.length), d.dim(shape.length));
    },
  },
  unfold: { draw: unfold, count: 20 },
  rot90: { draw: rot90, count: 14 },
  fliplr: plain('fliplr', 2),
  flipud: plain('flipud', 1),
  argwhere: { draw: (d) => d.call('argwhere', d.tensor(d.shape(), { dtype: d.anyType(), grad: false })) },
  ravel: plain('ravel'),
  hstack: stacks('hstack'),
  vstack: stacks('vstack'),
  dstack: stacks('dstack'),
  columnStack: stacks('columnStack'),
  atleast1d: { ...plain('atleast1d'), count: 6 },
  atleast2d: { ...plain('atleast2d'), count: 6 },
  atleast3d: { ...plain('atleast3d'), count: 6 },
  tensorSplit: { draw: tensorSplit, count: 20 },
  hsplit: splits('hsplit', 1, 1),
  vsplit: splits('vsplit', 2, 0),
  dsplit: splits('dsplit', 3, 2),
  broadcastTo: {
    draw: (d) => {
      const shape = d.shape(0, 4);
      d.call('broadcastTo', anyTensor(d, d.narrower(shape)), shape);
    },
  },
  broadcastTensors: {
    draw: (d) => {
      const shape = d.shape();
      const count = d.draws.int(1, 3);
      d.call('broadcastTensors', ...Array.from({ length: count }, () => anyTensor(d, d.narrower(shape))));
    },
  },
  viewAs: asOther('viewAs'),
  reshapeAs: asOther('reshapeAs'),
  expandAs: asOther('expandAs'),
  cartesianProd: { draw: cartesianProd },
  combinations: { draw: combinations, count: 12 },
};
