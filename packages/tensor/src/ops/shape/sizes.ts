// Shapes that are broadcast, and sums over what was broadcast.
import { summedTo } from '../../autograd/graph.ts';
import { checkedShape, broadcastShapes as joinedShape, type Shape, sameShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { cannotStretchInto } from '../../errors.ts';
import { requireTensor } from '../elementwise/convert.ts';
import { sum } from '../reduce/reduce.ts';

/** Returns the shape to which tensors of these shapes are broadcast together. Throws if they do not fit. */
export const broadcastShapes = (...shapes: readonly Shape[]): number[] =>
  shapes
    .map((shape) => checkedShape('broadcastShapes', shape))
    .reduce<number[]>((joined, shape) => [...joinedShape('broadcastShapes', joined, shape)], []);

/**
 * Sums over the dimensions along which a tensor of `shape` would be broadcast to the shape of `a`. Returns `a` itself
 * if it has this shape.
 */
export function sumToSize(a: Tensor, shape: Shape): Tensor {
  requireTensor('sumToSize', a);
  const wanted = checkedShape('sumToSize', shape);
  const fits = wanted.length <= a.rank && sameShape(joinedShape('sumToSize', wanted, a.shape), a.shape);
  if (!fits) throw cannotStretchInto('sumToSize', wanted, a.shape);
  return wanted.length === 0 ? sum(a) : summedTo(a, wanted);
}
