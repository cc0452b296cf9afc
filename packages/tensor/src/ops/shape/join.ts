// Joins tensors, and splits them.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import type { Strided } from '../../backends/operands.ts';
import { notTensors } from '../../checks/argument-errors.ts';
import { checkList } from '../../checks/arguments.ts';
import { promoteTypes } from '../../core/dtype.ts';
import { checkListed } from '../../core/host-numbers.ts';
import { denseLayout, narrowed } from '../../core/layout.ts';
import type { Storage } from '../../core/memory/storage.ts';
import { checkedDim, type Shape, sameShape } from '../../core/shape.ts';
import { empty, Tensor } from '../../core/tensor.ts';
import { badOption, badSizes, joinShapes, shown } from '../../errors.ts';
import { requireTensor } from '../elementwise/convert.ts';
import { jointDevice } from '../joint-device.ts';
import { narrow, unsqueeze } from './views.ts';

/** Returns the location of `size` indices from `start` along `dim`, in dense memory of `shape`. */
function region({ memory }: Storage, shape: Shape, dim: number, start: number, size: number): Strided {
  const { offset, strides } = narrowed(denseLayout(shape), dim, start, size, 1);
  return { memory, offset, strides };
}

function checkTensors(op: string, tensors: readonly Tensor[]): void {
  const areTensors = Array.isArray(tensors) && tensors.every((tensor) => tensor instanceof Tensor);
  if (!areTensors) throw notTensors(op, tensors);
  if (tensors.length === 0) throw badOption(`${op}: tensors`, 'at least one', 'none');
}

/**
 * Returns whether `cat` skips a tensor: as in PyTorch, a tensor of shape [0] is accepted beside tensors of any shape.
 */
const isNothing = ({ rank, count }: Tensor): boolean => rank === 1 && count === 0;

/** Concatenates tensors along `dim`, in their joint dtype. Returns a copy. */
export function cat(tensors: readonly Tensor[], dim = 0): Tensor {
  checkTensors('cat', tensors);
  const first = tensors.find((tensor) => !isNothing(tensor)) ?? tensors[0]!;
  const at = checkedDim('cat', dim, first.rank);
  let total = 0;
  const parts = tensors.map((tensor) => {
    const size = isNothing(tensor) ? 0 : tensor.shape[at]!;
    const own = first.shape.with(at, size);
    if (!isNothing(tensor) && !sameShape(tensor.shape, own))
      throw joinShapes('cat', first.shape, tensor.shape);
    total += size;
    return { start: total - size, shape: own, target: tensor.target };
  });
  const shape = first.shape.with(at, total);
  const dtype = tensors.map((tensor) => tensor.dtype).reduce(promoteTypes);
  for (const tensor of tensors) jointDevice('cat', first, tensor);
  const out = empty(dtype, shape, first.device);
  for (const [i, { strided, count }] of tensors.entries()) {
    const { start, shape: own } = parts[i]!;
    if (count > 0) kernels().copy(own, region(out.storage, shape, at, start, own[at]!), strided);
  }
  if (!tensors.some((tensor) => isRecording(tensor))) return out;
  return record(
    'cat',
    out,
    parts.map((part) => part.target),
    [],
    (grad, graph) => {
      if (graph) {
        const { grad: whole } = graphOf(graph);
        for (const { start, shape: own, target } of parts)
          graphOf(graph).send(target, whole.narrow(at, start, own[at]!));
        return;
      }
      for (const { start, shape: own, target } of parts) {
        if (target === null) continue;
        const into = target.begin();
        if (target.count > 0) kernels().copy(own, into.dense, region(grad, shape, at, start, own[at]!));
        target.end(into);
      }
    },
  );
}

/** Joins tensors of one shape along a new dimension, which is `dim` of the result. Returns a copy. */
export function stack(tensors: readonly Tensor[], dim = 0): Tensor {
  checkTensors('stack', tensors);
  for (const tensor of tensors) {
    if (!sameShape(tensor.shape, tensors[0]!.shape))
      throw joinShapes('stack', tensors[0]!.shape, tensor.shape);
  }
  const views = tensors.map((tensor) => unsqueeze(tensor, dim));
  const out = cat(views, dim);
  for (const view of views) view.dispose();
  return out;
}

/**
 * Splits `a` along `dim` into parts of the given sizes, or of one size, of which the last may be smaller. The parts
 * share memory with `a`.
 */
export function split(a: Tensor, sizes: number | readonly number[], dim = 0): Tensor[] {
  requireTensor('split', a);
  const at = checkedDim('split', dim, a.rank);
  const size = a.shape[at]!;
  const all = typeof sizes === 'number' ? evenSizes(size, sizes) : sizes;
  checkList('split', 'sizes', all);
  const isWhole =
    all.every((part) => Number.isInteger(part) && part >= 0) && all.reduce((x, y) => x + y, 0) === size;
  if (!isWhole) throw badSizes('split', all, size);
  let start = 0;
  return all.map((part) => {
    start += part;
    return narrow(a, at, start - part, part);
  });
}

function evenSizes(size: number, each: number): number[] {
  if (size === 0 && each === 0) return [0];
  if (!Number.isInteger(each) || each < 1) throw badOption('split: size', 'an integer ≥ 1', shown(each));
  const count = Math.max(1, Math.ceil(size / each));
  checkListed(count);
  return Array.from({ length: count }, (_, i) => Math.min(each, size - i * each));
}

/**
 * Splits `a` along `dim` into at most `chunks` parts of one size, of which the last may be smaller; into `chunks` parts
 * if the size is 0. The parts share memory with `a`.
 */
export function chunk(a: Tensor, chunks: number, dim = 0): Tensor[] {
  requireTensor('chunk', a);
  const size = a.shape[checkedDim('chunk', dim, a.rank)]!;
  if (!Number.isInteger(chunks) || chunks < 1)
    throw badOption('chunk: chunks', 'an integer ≥ 1', shown(chunks));
  if (size === 0) checkListed(chunks, 2 ** 22);
  if (size === 0) return split(a, new Array<number>(chunks).fill(0), dim);
  return split(a, Math.ceil(size / chunks), dim);
}
