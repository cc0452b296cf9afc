// Cases of views (reshape, narrow, at, …) and of functions that rearrange, join, copy or convert elements (flip, cat,
// to, …). A few draw invalid arguments, for which both libraries must throw.
import type { Arg } from '../../case.ts';
import { countOf, type Draft, nothing } from '../../draft.ts';
import type { Makers } from '../index.ts';

const anyTensor = (d: Draft, shape = d.shape()): { shape: number[]; x: Arg } => ({
  shape,
  x: d.tensor(shape, { dtype: d.anyType() }),
});

/** Draws a list of sizes with the same product as `shape`. Some lists have a −1, and a few are invalid. */
function otherSizes(d: Draft, shape: readonly number[]): number[] {
  const { draws } = d;
  let left = countOf(shape);
  const sizes: number[] = [];
  if (left === 0) sizes.push(...draws.shuffled(shape));
  else {
    // Takes out factors in random order; the last size is what remains.
    for (const factor of draws.shuffled([2, 3, 4, 1, 2])) {
      if (left % factor !== 0 || draws.chance(0.3)) continue;
      sizes.push(factor);
      left /= factor;
    }
    if (left !== 1 || draws.chance(0.3)) sizes.push(left);
  }
  if (sizes.length > 0 && draws.chance(0.4)) sizes[draws.int(0, sizes.length - 1)] = -1;
  if (draws.chance(0.06)) sizes.push(draws.pick([3, -1, -2]));
  return sizes;
}

function squeeze(d: Draft): void {
  const { shape, x } = anyTensor(d);
  d.call('squeeze', x, d.draws.chance(0.3) ? nothing : d.dim(shape.length));
}

function expand(d: Draft): void {
  const shape = d.shape(0, 4);
  const { x } = anyTensor(d, d.narrower(shape));
  d.call(
    'expand',
    x,
    shape.map((size) => (d.draws.chance(0.12) ? -1 : size)),
  );
}

function narrow(d: Draft): void {
  const { shape, x } = anyTensor(d);
  const dim = d.dim(shape.length);
  const size = shape.at(dim) ?? 1;
  const start = d.draws.int(0, size);
  const length = d.draws.int(0, size - start) + Number(d.draws.chance(0.06));
  d.call('narrow', x, dim, d.draws.chance(0.3) ? start - size : start, length);
}

function select(d: Draft): void {
  const { shape, x } = anyTensor(d);
  const dim = d.dim(shape.length);
  const size = shape.at(dim) ?? 1;
  d.call('select', x, dim, d.draws.int(-size, size - Number(!d.draws.chance(0.08))));
}

function at(d: Draft): void {
  const { draws } = d;
  const { shape, x } = anyTensor(d);
  const bound = (size: number): Arg => draws.pick<Arg>([null, draws.int(-size - 1, size + 1)]);
  // A list is [start, end?, step?]. One element alone is the start, as in Python's x[2:], not the end, as in slice(2).
  const indices: Arg[] = shape
    .slice(0, draws.int(0, shape.length))
    .map((size) =>
      draws.pick<() => Arg>([
        () => draws.int(-size, size - Number(!draws.chance(0.08))),
        () => ':',
        () => [bound(size)],
        () => [bound(size), bound(size)],
        () => [bound(size), bound(size), draws.int(1, 3)],
      ])(),
    );
  if (draws.chance(0.25)) indices.splice(draws.int(0, indices.length), 0, '...');
  if (draws.chance(0.2)) indices.splice(draws.int(0, indices.length), 0, null);
  if (draws.chance(0.04)) indices.push(0, 0);
  d.call('at', x, ...indices);
}

function split(d: Draft): void {
  const { draws } = d;
  const { shape, x } = anyTensor(d, d.shape(1));
  const dim = d.dim(shape.length);
  const size = shape.at(dim) ?? 1;
  const first = draws.int(0, size);
  d.call(
    'split',
    x,
    draws.chance(0.5)
      ? draws.int(draws.chance(0.1) ? 0 : 1, 3)
      : [first, size - first + Number(draws.chance(0.08))],
    dim,
  );
}

function roll(d: Draft): void {
  const { draws } = d;
  const { shape, x } = anyTensor(d);
  if (draws.chance(0.25)) d.call('roll', x, draws.int(-5, 5));
  else if (draws.chance(0.6) || shape.length < 2) d.call('roll', x, draws.int(-5, 5), d.dim(shape.length));
  else d.call('roll', x, [draws.int(-5, 5), draws.int(-5, 5)], [d.dim(shape.length), d.dim(shape.length)]);
}

function flip(d: Draft): void {
  const { shape, x } = anyTensor(d);
  const dims = d.dims(shape.length);
  d.call('flip', x, dims === nothing ? 0 : dims); // flip() has no default
}

function repeat(d: Draft): void {
  const { shape, x } = anyTensor(d, d.shape(0, 3));
  const extra = d.draws.chance(0.3) ? 1 : 0;
  const counts = Array.from({ length: shape.length + extra }, () => d.draws.pick([0, 1, 1, 2, 3]));
  if (d.draws.chance(0.06)) counts.pop();
  d.call('repeat', x, counts);
}

function unflatten(d: Draft): void {
  const { shape, x } = anyTensor(d, d.shape(1, 3));
  const dim = d.dim(shape.length);
  d.call('unflatten', x, dim, otherSizes(d, [shape.at(dim) ?? 1]));
}

/** Calls `op` with up to three tensors, which in most cases fit together; each may have a dtype of its own. */
function join(d: Draft, op: 'cat' | 'stack'): void {
  const { draws } = d;
  const shape = d.shape(draws.chance(0.06) ? 0 : 1, 3);
  const dim = d.dim(shape.length + Number(op === 'stack'));
  const dtype = d.anyType();
  const list = Array.from({ length: draws.int(draws.chance(0.05) ? 0 : 1, 3) }, () => {
    const own = [...shape];
    const joined = dim < 0 ? dim + shape.length : dim; // for cat
    if (op === 'cat' && joined in own) own[joined] = d.size();
    if (own.length > 0 && draws.chance(0.04)) own[draws.int(0, own.length - 1)] = 5;
    return d.tensor(own, { dtype: draws.chance(0.7) ? dtype : d.anyType() });
  });
  if (op === 'cat' && draws.chance(0.08)) list.push(d.tensor([0], { dtype }));
  d.call(op, list, dim);
}

function to(d: Draft): void {
  // NaN and infinities have no value in integer dtypes that is defined.
  const x = d.tensor(d.shape(), { dtype: d.anyType(), domain: 'finite' });
  d.call(
    'to',
    x,
    d.draws.pick(['float32', 'float64', 'float16', 'bfloat16', 'int32', 'int64', 'bool', 'uint8']),
  );
}

const plain = (op: string) => ({ draw: (d: Draft): void => d.call(op, anyTensor(d).x) });

export const views: Makers = {
  reshape: {
    draw: (d) => {
      const { shape, x } = anyTensor(d);
      d.call('reshape', x, otherSizes(d, shape));
    },
  },
  view: {
    draw: (d) => {
      const { shape, x } = anyTensor(d);
      d.call('view', x, otherSizes(d, shape));
    },
    count: 14,
  },
  flatten: {
    draw: (d) => {
      const { shape, x } = anyTensor(d);
      d.call('flatten', x, d.dim(shape.length), d.draws.chance(0.7) ? -1 : d.dim(shape.length));
    },
  },
  squeeze: { draw: squeeze },
  unsqueeze: {
    draw: (d) => {
      const { shape, x } = anyTensor(d);
      d.call('unsqueeze', x, d.dim(shape.length + 1));
    },
  },
  permute: {
    draw: (d) => {
      const { shape, x } = anyTensor(d);
      const order = d.draws
        .shuffled(shape.map((_, i) => i))
        .map((i) => (d.draws.chance(0.3) ? i - shape.length : i));
      d.call('permute', x, d.draws.chance(0.05) ? [...order, 0] : order);
    },
  },
  transpose: {
    draw: (d) => {
      const { shape, x } = anyTensor(d);
      d.call('transpose', x, d.dim(shape.length), d.dim(shape.length));
    },
  },
  t: { draw: (d) => d.call('t', anyTensor(d, d.shape(0, d.draws.chance(0.1) ? 3 : 2)).x) },
  expand: { draw: expand },
  narrow: { draw: narrow },
  select: { draw: select },
  at: { draw: at, count: 24 },
  split: { draw: split },
  chunk: {
    draw: (d) => {
      const { shape, x } = anyTensor(d, d.shape(1));
      d.call('chunk', x, d.draws.int(d.draws.chance(0.1) ? 0 : 1, 4), d.dim(shape.length));
    },
  },
  unbind: {
    draw: (d) => {
      const { shape, x } = anyTensor(d);
      d.call('unbind', x, d.dim(shape.length));
    },
  },
  unflatten: { draw: unflatten },
  flip: { draw: flip },
  roll: { draw: roll },
  repeat: { draw: repeat },
  cat: { draw: (d) => join(d, 'cat'), count: 14 },
  stack: { draw: (d) => join(d, 'stack') },
  clone: plain('clone'),
  contiguous: plain('contiguous'),
  detach: plain('detach'),
  to: { draw: to, count: 24 },
};
