// Changes the order of elements, and repeats them.

import { checkList } from '../../checks/arguments.ts';
import { unevenShifts } from '../../checks/op-errors.ts';
import { scope } from '../../core/context.ts';
import { checkListed } from '../../core/host-numbers.ts';
import type { Layout } from '../../core/layout.ts';
import type { Dims } from '../../core/op-options.ts';
import { checkedDim, checkedDims, checkedShape, countOf, type Shape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, cannotReshape, shown } from '../../errors.ts';
import { clone, requireTensor } from '../elementwise/convert.ts';
import { cat } from './join.ts';
import { expand, flatten, narrow, reordered, reshape, select } from './views.ts';

/** Returns the layout with dimension `dim` in reverse order. */
const turnedAround = ({ shape, strides, offset }: Layout, dim: number): Layout => ({
  shape,
  strides: strides.with(dim, -strides[dim]!),
  offset: offset + Math.max(0, shape[dim]! - 1) * strides[dim]!,
});

/** Reverses the order along `dims`. Returns a copy. */
export function flip(a: Tensor, dims: Dims): Tensor {
  requireTensor('flip', a);
  if (dims === undefined) throw badOption('flip: dims', 'one or more dimensions', 'none');
  const turned = checkedDims('flip', dims, Math.max(1, a.rank)).filter((dim) => dim < a.rank);
  return scope(() => clone(reordered('flip', a, (layout) => turned.reduce(turnedAround, layout))));
}

/**
 * Moves elements by `shifts` along `dims`, one shift for each dimension; elements that move past the end continue at
 * the start. Without `dims`, moves the elements of the flattened tensor. Returns a copy.
 */
export function roll(a: Tensor, shifts: Dims, dims?: Dims): Tensor {
  requireTensor('roll', a);
  const moves = typeof shifts === 'number' ? [shifts] : shifts;
  checkList('roll', 'the shifts', moves);
  for (const shift of moves)
    if (!Number.isSafeInteger(shift)) throw badOption('roll: shift', 'an integer', shown(shift));
  const along = typeof dims === 'number' ? [dims] : (dims ?? []);
  checkList('roll', 'the dims', along);
  if (moves.length !== Math.max(1, along.length)) throw unevenShifts(moves.length, along.length);
  if (along.length === 0) return scope(() => reshape(rolled(flatten(a), moves[0]!, 0), a.shape));
  const ats = along.map((dim) => checkedDim('roll', dim, a.rank));
  return scope(() => ats.reduce((moved, at, i) => rolled(moved, moves[i]!, at), a));
}

function rolled(a: Tensor, shift: number, dim: number): Tensor {
  const size = a.shape[dim]!;
  if (size === 0) return clone(a);
  const start = ((shift % size) + size) % size;
  return cat([narrow(a, dim, size - start, start), narrow(a, dim, 0, size - start)], dim);
}

/**
 * Checks the counts of `op`, which are aligned with the dimensions at the end. A dimension without elements may have a
 * count below 0, as in PyTorch, and stays without.
 */
export function repetitions(op: string, a: Tensor, counts: Shape): Shape {
  if (!Array.isArray(counts)) return checkedShape(op, counts);
  const ahead = counts.length - a.rank;
  return checkedShape(
    op,
    (counts as Shape).map((count, i) =>
      a.shape[i - ahead] === 0 && Number.isSafeInteger(count) ? Math.max(0, count) : count,
    ),
  );
}

/**
 * Repeats the tensor `counts[d]` times along dimension d; more counts than dimensions add dimensions in
 * front. Returns a copy.
 */
export function repeat(a: Tensor, counts: Shape): Tensor {
  requireTensor('repeat', a);
  const times = repetitions('repeat', a, counts);
  if (times.length < a.rank) throw badOption('repeat: counts', `at least ${a.rank}`, String(times.length));
  const own = [...new Array<number>(times.length - a.rank).fill(1), ...a.shape];
  return scope(() => {
    const apart = reshape(
      a,
      own.flatMap((size) => [1, size]),
    );
    const many = expand(
      apart,
      own.flatMap((size, d) => [times[d]!, size]),
    );
    const shape = own.map((size, d) => size * times[d]!);
    return reshape(many.isContiguous ? clone(many) : many, shape);
  });
}

/** Returns the slices along `dim`, without that dimension. They share memory with `a`. */
export function unbind(a: Tensor, dim = 0): Tensor[] {
  requireTensor('unbind', a);
  const at = checkedDim('unbind', dim, a.rank);
  const size = a.shape[at]!;
  checkListed(size);
  return Array.from({ length: size }, (_, i) => select(a, at, i));
}

/** Splits one dimension into several; one size may be −1. Shares memory with `a` where reshape does. */
export function unflatten(a: Tensor, dim: number, sizes: Shape): Tensor {
  requireTensor('unflatten', a);
  const at = checkedDim('unflatten', dim, a.rank);
  checkList('unflatten', 'the sizes', sizes);
  if (sizes.length === 0) throw badOption('unflatten: sizes', 'at least one', 'none');
  const rest = countOf(sizes.filter((size) => size !== -1));
  const own = sizes.map((size) => (size === -1 ? a.shape[at]! / rest : size));
  const hasOneFree = sizes.indexOf(-1) === sizes.lastIndexOf(-1);
  const areSizes = own.every((size) => Number.isSafeInteger(size) && size >= 0);
  const fits = hasOneFree && areSizes && countOf(own) === a.shape[at];
  if (!fits) throw cannotReshape([a.shape[at]!], sizes);
  return reshape(a, [...a.shape.slice(0, at), ...own, ...a.shape.slice(at + 1)]);
}
