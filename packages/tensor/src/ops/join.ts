// Tensors side by side, and cut apart again.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import { promoteTypes } from '../dtype.ts';
import { badOption, badSizes, joinShapes } from '../errors.ts';
import type { Strided } from '../kernels.ts';
import { denseLayout, narrowed } from '../layout.ts';
import { checkedDim, type Shape, sameShape } from '../shape.ts';
import type { Storage } from '../storage.ts';
import { empty, type Tensor } from '../tensor.ts';
import { jointDevice } from './joint-device.ts';
import { narrow, unsqueeze } from './views.ts';

/** The part of dense memory in `shape` that starts at `start` along `dim`. */
function region({ memory }: Storage, shape: Shape, dim: number, start: number, size: number): Strided {
  const { offset, strides } = narrowed(denseLayout(shape), dim, start, size, 1);
  return { memory, offset, strides };
}

/** Tensors one behind the other along `dim`, in the dtype in which they meet. A copy. */
export function cat(tensors: readonly Tensor[], dim = 0): Tensor {
  const first = tensors[0];
  if (first === undefined) throw badOption('cat: tensors', 'at least one', 'none');
  const at = checkedDim('cat', dim, first.rank);
  let total = 0;
  const parts = tensors.map((tensor) => {
    if (tensor.rank !== first.rank || !sameShape(tensor.shape.with(at, 0), first.shape.with(at, 0))) {
      throw joinShapes('cat', first.shape, tensor.shape);
    }
    const start = total;
    total += tensor.shape[at]!;
    return { start, shape: tensor.shape, target: tensor.target };
  });
  const shape = first.shape.with(at, total);
  const dtype = tensors.map((tensor) => tensor.dtype).reduce(promoteTypes);
  for (const tensor of tensors) jointDevice('cat', first, tensor);
  const out = empty(dtype, shape, first.device);
  for (const [i, tensor] of tensors.entries()) {
    const into = region(out.storage, shape, at, parts[i]!.start, tensor.shape[at]!);
    kernels().copy(tensor.shape, into, tensor.strided);
  }
  if (!tensors.some((tensor) => isRecording(tensor))) return out;
  return record(
    'cat',
    out,
    parts.map((part) => part.target),
    [],
    (grad) => {
      for (const { start, shape: own, target } of parts) {
        if (target === null) continue;
        const into = target.begin();
        kernels().copy(own, into.dense, region(grad, shape, at, start, own[at]!));
        target.end(into);
      }
    },
  );
}

/** Tensors of one shape along a new dimension before `dim`. A copy. */
export function stack(tensors: readonly Tensor[], dim = 0): Tensor {
  for (const tensor of tensors) {
    if (!sameShape(tensor.shape, tensors[0]!.shape))
      throw joinShapes('stack', tensors[0]!.shape, tensor.shape);
  }
  const views = tensors.map((tensor) => unsqueeze(tensor, dim));
  const out = cat(views, dim);
  for (const view of views) view.dispose();
  return out;
}

/** Parts of the given sizes along `dim`, or of one size, the last one smaller if need be. They share memory with `a`. */
export function split(a: Tensor, sizes: number | readonly number[], dim = 0): Tensor[] {
  const at = checkedDim('split', dim, a.rank);
  const size = a.shape[at]!;
  const all = typeof sizes === 'number' ? evenSizes(size, sizes) : sizes;
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
  if (!Number.isInteger(each) || each < 1) throw badOption('split: size', 'an integer ≥ 1', each);
  return Array.from({ length: Math.max(1, Math.ceil(size / each)) }, (_, i) =>
    Math.min(each, size - i * each),
  );
}

/** At most `chunks` parts of one size along `dim`, the last one smaller if need be. They share memory with `a`. */
export function chunk(a: Tensor, chunks: number, dim = 0): Tensor[] {
  const size = a.shape[checkedDim('chunk', dim, a.rank)]!;
  if (!Number.isInteger(chunks) || chunks < 1) throw badOption('chunk: chunks', 'an integer ≥ 1', chunks);
  return split(a, Math.max(1, Math.ceil(size / chunks)), dim);
}
