// Elements of one tensor in another order, or several times.
import { scope } from '../context.ts';
import { badOption, cannotReshape } from '../errors.ts';
import type { Layout } from '../layout.ts';
import { checkedDim, checkedShape, countOf, type Shape } from '../shape.ts';
import type { Tensor } from '../tensor.ts';
import { clone } from './convert.ts';
import { cat } from './join.ts';
import { expand, flatten, narrow, reordered, reshape, select } from './views.ts';

const turnedAround = ({ shape, strides, offset }: Layout, dim: number): Layout => ({
  shape,
  strides: strides.with(dim, -strides[dim]!),
  offset: offset + Math.max(0, shape[dim]! - 1) * strides[dim]!,
});

/** The order along `dims` turned around. A copy. */
export function flip(a: Tensor, dims: number | readonly number[]): Tensor {
  const turned = new Set(
    (typeof dims === 'number' ? [dims] : dims).map((dim) => checkedDim('flip', dim, a.rank)),
  );
  return scope(() => clone(reordered('flip', a, (layout) => [...turned].reduce(turnedAround, layout))));
}

/** Moves elements by `shift` along `dim`; what leaves at the end comes in at the start. Without `dim`, in the flattened tensor. A copy. */
export function roll(a: Tensor, shift: number, dim?: number): Tensor {
  if (!Number.isSafeInteger(shift)) throw badOption('roll: shift', 'an integer', shift);
  if (dim === undefined) return scope(() => reshape(roll(flatten(a), shift, 0), a.shape));
  const at = checkedDim('roll', dim, a.rank);
  const size = a.shape[at]!;
  if (size === 0) return clone(a);
  const start = ((shift % size) + size) % size;
  return scope(() => cat([narrow(a, at, size - start, start), narrow(a, at, 0, size - start)], at));
}

/** The tensor `counts[d]` times along each dimension; more counts than dimensions add some in front. A copy. */
export function repeat(a: Tensor, counts: Shape): Tensor {
  const times = checkedShape('repeat', counts);
  if (times.length < a.rank) throw badOption('repeat: counts', `at least ${a.rank}`, times.length);
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

/** The tensors along `dim`, which goes away. They share memory with `a`. */
export function unbind(a: Tensor, dim = 0): Tensor[] {
  const at = checkedDim('unbind', dim, a.rank);
  return Array.from({ length: a.shape[at]! }, (_, i) => select(a, at, i));
}

/** Makes several dimensions of one; one size may be −1. Shares memory with `a` where reshape does. */
export function unflatten(a: Tensor, dim: number, sizes: Shape): Tensor {
  const at = checkedDim('unflatten', dim, a.rank);
  const rest = countOf(sizes.filter((size) => size !== -1));
  const own = sizes.map((size) => (size === -1 ? a.shape[at]! / rest : size));
  const hasOneFree = sizes.indexOf(-1) === sizes.lastIndexOf(-1);
  const areSizes = own.every((size) => Number.isSafeInteger(size) && size >= 0);
  const fits = hasOneFree && areSizes && countOf(own) === a.shape[at];
  if (!fits) throw cannotReshape([a.shape[at]!], sizes);
  return reshape(a, [...a.shape.slice(0, at), ...own, ...a.shape.slice(at + 1)]);
}
