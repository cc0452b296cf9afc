// Cases of products of vectors and matrices under their own names, and of diagonals.
import type { Arg, Ref } from '../../case.ts';
import { allTypes, type Draft, isFloat, nothing } from '../../draft.ts';
import { options } from '../arrays/arrays.ts';
import type { Maker, Makers } from '../index.ts';

/** Returns `size`, or in a few cases a size that does not fit. */
const wrong = (d: Draft, size: number): number => (d.draws.chance(0.03) ? size + 1 : size);

type Shapes = readonly [number[], number[]];

/** Draws a product of two tensors of one dtype, with the shapes that a function draws. */
const product = (op: string, shapes: (d: Draft) => Shapes, isMixed = false): Maker => ({
  draw: (d) => {
    const dtype = d.anyType();
    const other = d.beside(dtype, allTypes, isMixed ? 0.3 : 0.06);
    const [left, right] = shapes(d);
    d.call(
      op,
      d.tensor(left, { dtype, domain: 'finite' }),
      d.tensor(right, { dtype: other, domain: 'finite' }),
    );
  },
  count: 14,
});

// Sizes of 0 are left out: PyTorch checks no dtypes then.
const size = (d: Draft): number => d.draws.int(1, 4);
const vectors = (d: Draft): Shapes => {
  const own = size(d);
  return [[own], [wrong(d, own)]];
};

const added = (op: string, shapes: (d: Draft) => readonly [number[], number[], number[]]): Maker => ({
  draw: (d) => {
    const { draws } = d;
    const dtype = d.anyType();
    const [out, left, right] = shapes(d);
    const isSpecial = draws.chance(0.2);
    const input = d.tensor(d.narrower(out), {
      dtype: d.beside(dtype, allTypes, 0.04),
      domain: isSpecial ? 'special' : 'finite',
    });
    const one = (shape: number[]): Ref => d.tensor(shape, { dtype, domain: 'finite' });
    const factors = isFloat(dtype) ? [nothing, 0, 1, 2, -0.5] : [nothing, 0, 1, 2, 1.5];
    const own = options({ beta: isSpecial ? 0 : draws.pick<Arg>(factors), alpha: draws.pick<Arg>(factors) });
    d.call(op, input, one(left), one(right), own);
  },
  count: 14,
});

function tensordot(d: Draft): void {
  const { draws } = d;
  const dtype = d.beside('float32', allTypes, 0.4);
  const shared = [size(d), size(d)];
  const dims = draws.int(0, 2);
  const isListed = draws.chance(0.5);
  const left = [size(d), ...shared.slice(0, dims)];
  const right = [
    ...shared.slice(0, dims).map((own) => (isListed && draws.chance(0.15) ? 1 : wrong(d, own))),
    size(d),
  ];
  const pairs: Arg = [
    Array.from({ length: dims }, (_, i) => (draws.chance(0.5) ? i + 1 : i - dims)),
    Array.from({ length: dims }, (_, i) => i),
  ];
  d.call(
    'tensordot',
    d.tensor(left, { dtype, domain: 'finite' }),
    d.tensor(right, { dtype, domain: 'finite' }),
    isListed ? pairs : dims,
  );
}

function cross(d: Draft): void {
  const shape = [size(d), size(d)];
  const at = d.draws.int(0, 2);
  const own = (): number[] =>
    shape.map((each) => (d.draws.chance(0.2) ? 1 : each)).toSpliced(at, 0, wrong(d, 3));
  const dtype = d.anyType();
  const other = d.beside(dtype, allTypes);
  const [x, y] = [
    d.tensor(own(), { dtype, domain: 'finite' }),
    d.tensor(own(), { dtype: other, domain: 'finite' }),
  ];
  d.call('cross', x, y, at === 2 ? nothing : at - 3);
}

const offset = (d: Draft): Arg => d.draws.pick([nothing, 0, 1, -1, 2, -3, 9]);

function diagonal(d: Draft): void {
  const { draws } = d;
  const shape = d.shape(draws.chance(0.06) ? 1 : 2);
  const x = d.tensor(shape, { dtype: d.anyType() });
  if (draws.chance(0.5)) d.call('diagonal', x, offset(d));
  else d.call('diagonal', x, draws.int(-2, 2), d.dim(shape.length), d.dim(shape.length));
}

function diagEmbed(d: Draft): void {
  const { draws } = d;
  const shape = d.shape(draws.chance(0.06) ? 0 : 1, 3);
  const x = d.tensor(shape, { dtype: d.anyType() });
  if (draws.chance(0.5)) d.call('diagEmbed', x, offset(d));
  else d.call('diagEmbed', x, draws.int(-2, 2), d.dim(shape.length + 1), d.dim(shape.length + 1));
}

const ofMatrix = (op: string, least: number, most: number, takesOffset: boolean): Maker => ({
  draw: (d) => {
    const shape = d.shape(d.draws.chance(0.06) ? 0 : least, d.draws.chance(0.06) ? 3 : most);
    const x = d.tensor(shape, { dtype: d.anyType() });
    d.call(op, x, takesOffset ? offset(d) : nothing);
  },
});

const triangleIndices = (op: string): Maker => ({
  draw: (d) => {
    const dtype = d.draws.pick([nothing, 'int32', 'int64']);
    d.call(
      op,
      d.draws.int(d.draws.chance(0.1) ? -1 : 0, 4),
      d.draws.int(0, 4),
      offset(d),
      options({ dtype }),
    );
  },
});

function blockDiag(d: Draft): void {
  const tensors = Array.from({ length: d.draws.int(0, 3) }, () =>
    d.tensor(d.shape(0, d.draws.chance(0.04) ? 3 : 2), { dtype: d.anyType() }),
  );
  d.call('blockDiag', ...tensors);
}

export const products: Makers = {
  outer: product('outer', (d) => [[size(d)], d.draws.chance(0.04) ? [1, 2] : [size(d)]], true),
  mm: product('mm', (d) => {
    const k = size(d);
    return [
      [size(d), k],
      [wrong(d, k), size(d)],
    ];
  }),
  bmm: product('bmm', (d) => {
    const [b, k] = [size(d), size(d)];
    return [
      [b, size(d), k],
      [d.draws.chance(0.05) ? 1 : b, wrong(d, k), size(d)],
    ];
  }),
  mv: product('mv', (d) => {
    const k = size(d);
    return [[size(d), k], [wrong(d, k)]];
  }),
  dot: product('dot', vectors),
  vdot: product('vdot', vectors),
  inner: product('inner', (d) => {
    const k = size(d);
    const lead = (): number[] => Array.from({ length: d.draws.int(0, 2) }, () => size(d));
    return d.draws.chance(0.15)
      ? [[], lead()]
      : [
          [...lead(), k],
          [...lead(), wrong(d, k)],
        ];
  }),
  kron: product('kron', (d) => [d.shape(0, 2), d.shape(0, 3)], true),
  tensordot: { draw: tensordot, count: 20 },
  cross: { draw: cross, count: 14 },
  addmm: added('addmm', (d) => {
    const [m, k, n] = [size(d), size(d), size(d)];
    return [
      [m, n],
      [m, k],
      [k, n],
    ];
  }),
  addmv: added('addmv', (d) => {
    const [m, k] = [size(d), size(d)];
    return [[m], [m, k], [k]];
  }),
  addr: added('addr', (d) => {
    const [m, n] = [size(d), size(d)];
    return [[m, n], [m], [n]];
  }),
  baddbmm: added('baddbmm', (d) => {
    const [b, m, k, n] = [size(d), size(d), size(d), size(d)];
    return [
      [b, m, n],
      [b, m, k],
      [b, k, n],
    ];
  }),
  addbmm: added('addbmm', (d) => {
    const [b, m, k, n] = [size(d), size(d), size(d), size(d)];
    return [
      [m, n],
      [b, m, k],
      [b, k, n],
    ];
  }),
  diagonal: { draw: diagonal, count: 18 },
  diagEmbed: { draw: diagEmbed, count: 14 },
  diag: { ...ofMatrix('diag', 1, 2, true), count: 14 },
  diagflat: ofMatrix('diagflat', 0, 2, true),
  trace: ofMatrix('trace', 2, 2, false),
  trilIndices: triangleIndices('trilIndices'),
  triuIndices: triangleIndices('triuIndices'),
  blockDiag: { draw: blockDiag, count: 12 },
};
