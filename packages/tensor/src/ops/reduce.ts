// Sums, means and maxima over dimensions; without dimensions over all.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import { emptyReduction } from '../errors.ts';
import type { Memory } from '../kernels.ts';
import {
  broadcastStrides,
  checkedDim,
  countOf,
  dimMask,
  planReduce,
  reducedShape,
  type Shape,
} from '../shape.ts';
import { allocate } from '../storage.ts';
import { empty, type Tensor } from '../tensor.ts';
import { dense, reduceInto, stretched } from './broadcast.ts';
import { requireFloat } from './convert.ts';

type Dims = number | readonly number[];

interface Reduced {
  readonly out: Tensor;
  /** The result's shape with the reduced dimensions as 1. */
  readonly keptShape: Shape;
  /** Elements of `a` for each element of the result. */
  readonly size: number;
}

function reduceForward(
  name: 'sum' | 'max' | 'mean',
  a: Tensor,
  dims: Dims | undefined,
  keepDim: boolean,
): Reduced {
  const mask = dimMask(name, dims, a.rank);
  const out = empty(a.dtype, reducedShape(a.shape, mask, keepDim));
  const steps = planReduce(a.shape, mask);
  if (steps.length === 0) kernels().copy(out.memory, a.memory);
  else reduceInto(name === 'max' ? 'max' : 'sum', out.memory, a.memory, steps);
  const size = countOf(a.shape.filter((_, d) => mask[d]));
  return { out, keptShape: reducedShape(a.shape, mask, true), size };
}

/** into[shape] = a stretched from `keptShape`. */
function expand(into: Memory, shape: Shape, a: Memory, keptShape: Shape): void {
  kernels().strided(into, a, shape, broadcastStrides(keptShape, shape), 0);
}

export function sum(a: Tensor, dims?: Dims, keepDim = false): Tensor {
  const { out, keptShape } = reduceForward('sum', a, dims, keepDim);
  if (!isRecording(a)) return out;
  const target = a.target!;
  const { shape } = a;
  return record('sum', out, [target], [], (grad) => {
    const into = target.begin();
    expand(into.memory, shape, grad.memory, keptShape);
    target.end(into);
  });
}

/** Float32 only. The mean of nothing is NaN. */
export function mean(a: Tensor, dims?: Dims, keepDim = false): Tensor {
  requireFloat('mean', a);
  const { out, keptShape, size } = reduceForward('mean', a, dims, keepDim);
  const scale = 1 / size;
  kernels().affine(out.memory, out.memory, scale, 0);
  if (!isRecording(a)) return out;
  const target = a.target!;
  const { shape } = a;
  return record('mean', out, [target], [], (grad) => {
    const into = target.begin();
    expand(into.memory, shape, grad.memory, keptShape);
    kernels().affine(into.memory, into.memory, scale, 0);
    target.end(into);
  });
}

/** The values of the maxima. Equal maxima share the gradient evenly, as in torch.amax. */
export function max(a: Tensor, dims?: Dims, keepDim = false): Tensor {
  const reduced = dimMask('max', dims, a.rank);
  if (a.shape.some((size, d) => size === 0 && reduced[d])) throw emptyReduction('max', a.shape);
  const { out, keptShape } = reduceForward('max', a, dims, keepDim);
  if (!isRecording(a)) return out;
  const target = a.target!;
  const { shape } = a;
  const x = a.memory;
  const top = out.memory;
  const steps = planReduce(shape, reduced);
  return record('max', out, [target], [a.storage, out.storage], (grad) => {
    const into = target.begin();
    const share = allocate('float32', top.count);
    stretched('eq', into.memory, shape, x, shape, top, keptShape);
    if (steps.length === 0) kernels().fill(share.memory, 1);
    else reduceInto('sum', share.memory, into.memory, steps);
    dense('div', share.memory, grad.memory, share.memory);
    stretched('mul', into.memory, shape, into.memory, shape, share.memory, keptShape);
    share.release();
    target.end(into);
  });
}

/** int32 index of the first maximum along `dim`; without `dim`, in the flattened tensor. NaN counts as the largest. */
export function argmax(a: Tensor, dim?: number, keepDim = false): Tensor {
  const at = dim === undefined ? null : checkedDim('argmax', dim, a.rank);
  const size = at === null ? a.count : a.shape[at]!;
  if (size === 0) throw emptyReduction('argmax', a.shape);
  const mask = a.shape.map((_, d) => at === null || d === at);
  const out = empty('int32', reducedShape(a.shape, mask, keepDim));
  const outer = at === null ? 1 : countOf(a.shape.slice(0, at));
  const inner = at === null ? 1 : countOf(a.shape.slice(at + 1));
  kernels().argmax(out.memory, a.memory, outer, size, inner);
  return out;
}
