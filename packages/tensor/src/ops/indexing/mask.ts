// Elements where a mask is true, and their positions. The sizes of these results depend on values, so on a device the
// host waits until they are known.
import { scope } from '../../core/context.ts';
import { broadcastShapes, countOf, stridesOf } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { needsMask } from '../../errors.ts';
import { ne } from '../elementwise/binary.ts';
import { contiguous, requireTensor, to } from '../elementwise/convert.ts';
import { stack } from '../shape/join.ts';
import { expand, reshape } from '../shape/views.ts';
import { lookedUp } from './moves.ts';
import { positionsOf, truePositions, whereTrue } from './positions.ts';

/** Returns int64 positions [count] along each dimension, of the elements that are not 0. */
function coordinates(a: Tensor): Tensor[] {
  const found = whereTrue(a.dtype === 'bool' ? a : ne(a, 0));
  return stridesOf(a.shape).map((stride, d) => {
    const along = found.map((at) => Math.floor(at / stride) % a.shape[d]!);
    return to(positionsOf(along, [along.length]), a.device);
  });
}

/** Returns the positions of the elements that are not 0, in row-major order: int64 [count, dimensions]. */
export function nonzero(a: Tensor): Tensor {
  requireTensor('nonzero', a);
  return scope(() => {
    if (a.rank > 0) return stack(coordinates(a), 1);
    const count = Number(ne(a, 0).item());
    return to(positionsOf([], [count, 0]), a.device);
  });
}

/** Returns the result of nonzero() as a list with a tensor [count] for each dimension, which at() accepts. */
export function nonzeroByDim(a: Tensor): Tensor[] {
  requireTensor('where', a);
  return scope(() => coordinates(a.rank === 0 ? reshape(a, [1]) : a));
}

/** Returns the elements of `a` where `mask` (bool) is true: [count]. Both are broadcast. */
export function maskedSelect(a: Tensor, mask: Tensor): Tensor {
  requireTensor('maskedSelect', a);
  requireTensor('maskedSelect', mask);
  if (mask.dtype !== 'bool') throw needsMask('maskedSelect', mask.dtype);
  const shape = broadcastShapes('maskedSelect', a.shape, mask.shape);
  return scope(() => {
    const positions = truePositions(expand(mask, shape));
    const sizes = { outer: 1, count: positions.count, size: countOf(shape), inner: 1, perElement: false };
    return lookedUp('maskedSelect', contiguous(expand(a, shape)), positions, [positions.count], sizes);
  });
}
