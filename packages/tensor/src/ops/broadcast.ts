// Kernel calls with broadcasting, and the gradient's way back: what was stretched is summed.
import type { GradTarget } from '../autograd/target.ts';
import { kernels } from '../backends/index.ts';
import type { BinaryOp, Memory, ReduceOp } from '../kernels.ts';
import {
  broadcastShapes,
  broadcastStrides,
  countOf,
  planReduce,
  type ReduceStep,
  type Shape,
  sameShape,
  stretchedMask,
} from '../shape.ts';
import { allocate, type Storage } from '../storage.ts';
import { empty, type Tensor } from '../tensor.ts';

const one = [1];

/** out = op(a, b), all dense and of equal count. */
export function dense(op: BinaryOp, out: Memory, a: Memory, b: Memory): void {
  kernels().binary(op, out, a, b, [out.count], one, one);
}

/** op(a, b) for tensors of one dtype, without a graph. */
export function broadcast(name: string, op: BinaryOp, a: Tensor, b: Tensor): Tensor {
  if (sameShape(a.shape, b.shape)) {
    const out = empty(a.dtype, a.shape);
    dense(op, out.memory, a.memory, b.memory);
    return out;
  }
  const shape = broadcastShapes(name, a.shape, b.shape);
  const out = empty(a.dtype, shape);
  stretched(op, out.memory, shape, a.memory, a.shape, b.memory, b.shape);
  return out;
}

/** out[shape] = op(a, b), with a and b stretched to `shape`. */
export function stretched(
  op: BinaryOp,
  out: Memory,
  shape: Shape,
  a: Memory,
  aShape: Shape,
  b: Memory,
  bShape: Shape,
): void {
  if (sameShape(aShape, shape) && sameShape(bShape, shape)) dense(op, out, a, b);
  else
    kernels().binary(op, out, a, b, shape, broadcastStrides(aShape, shape), broadcastStrides(bShape, shape));
}

/** Runs `steps`, each on the result of the one before, the last into `out`. There is at least one. */
export function reduceInto(op: ReduceOp, out: Memory, a: Memory, steps: readonly ReduceStep[]): void {
  let from = a;
  let temporary: Storage | null = null;
  for (const [i, { outer, size, inner }] of steps.entries()) {
    const isLast = i === steps.length - 1;
    const to: Storage | null = isLast ? null : allocate(a.dtype, outer * inner);
    kernels().reduce(op, to?.memory ?? out, from, outer, size, inner);
    temporary?.release();
    temporary = to;
    from = to?.memory ?? out;
  }
}

/** Sends `grad` (of `shape`) to an input that was stretched from `inputShape`. */
export function shareReduced(target: GradTarget, grad: Storage, shape: Shape, inputShape: Shape): void {
  const steps = planReduce(shape, stretchedMask(inputShape, shape));
  if (steps.length === 0) {
    target.share(grad);
    return;
  }
  const out = target.begin();
  reduceInto('sum', out.memory, grad.memory, steps);
  target.end(out);
}

/** Where to write a contribution of `shape` for an input of `inputShape`; hand it to endReduced. */
export function beginReduced(target: GradTarget, shape: Shape, inputShape: Shape): Storage {
  return sameShape(shape, inputShape) ? target.begin() : allocate('float32', countOf(shape));
}

export function endReduced(target: GradTarget, grad: Storage, shape: Shape, inputShape: Shape): void {
  if (sameShape(shape, inputShape)) {
    target.end(grad);
    return;
  }
  shareReduced(target, grad, shape, inputShape);
  grad.release();
}
