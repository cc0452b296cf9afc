// Other shapes over the same memory, and transposing, which copies: all tensors are dense.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import { cannotReshape, needsRank, notSizeOne } from '../errors.ts';
import { checkedDim, countOf, type Shape, stridesOf } from '../shape.ts';
import { empty, type Tensor, view } from '../tensor.ts';

function reshaped(name: string, a: Tensor, shape: Shape): Tensor {
  const out = view(a, shape);
  if (!isRecording(a)) return out;
  const target = a.target!;
  return record(name, out, [target], [], (grad) => target.share(grad));
}

/** Shares memory with `a`. One size may be −1: what is left. */
export function reshape(a: Tensor, shape: Shape): Tensor {
  const free = shape.indexOf(-1);
  const own = [...shape];
  if (free >= 0) {
    own[free] = 1;
    own[free] = a.count / countOf(own);
  }
  if (!own.every((size) => Number.isSafeInteger(size) && size >= 0) || countOf(own) !== a.count) {
    throw cannotReshape(a.shape, shape);
  }
  return reshaped('reshape', a, own);
}

/** Makes one dimension of startDim … endDim. Shares memory with `a`. */
export function flatten(a: Tensor, startDim = 0, endDim = -1): Tensor {
  if (a.rank === 0) return reshaped('flatten', a, [1]);
  const start = checkedDim('flatten', startDim, a.rank);
  const end = checkedDim('flatten', endDim, a.rank);
  const merged = countOf(a.shape.slice(start, end + 1));
  return reshaped('flatten', a, [...a.shape.slice(0, start), merged, ...a.shape.slice(end + 1)]);
}

/** Drops dimension `dim`, which must have size 1; without `dim`, all that have. Shares memory with `a`. */
export function squeeze(a: Tensor, dim?: number): Tensor {
  if (dim === undefined)
    return reshaped(
      'squeeze',
      a,
      a.shape.filter((size) => size !== 1),
    );
  const at = checkedDim('squeeze', dim, a.rank);
  if (a.shape[at] !== 1) throw notSizeOne(dim, a.shape);
  return reshaped('squeeze', a, a.shape.toSpliced(at, 1));
}

/** Adds a dimension of size 1 before `dim`. Shares memory with `a`. */
export function unsqueeze(a: Tensor, dim: number): Tensor {
  const at = checkedDim('unsqueeze', dim, a.rank + 1);
  return reshaped('unsqueeze', a, a.shape.toSpliced(at, 0, 1));
}

/** Swaps two dimensions, as a copy. */
export function transpose(a: Tensor, dim0: number, dim1: number): Tensor {
  const from = checkedDim('transpose', dim0, a.rank);
  const to = checkedDim('transpose', dim1, a.rank);
  const shape = swapped(a.shape, from, to);
  const out = empty(a.dtype, shape);
  kernels().strided(out.memory, a.memory, shape, swapped(stridesOf(a.shape), from, to), 0);
  if (!isRecording(a)) return out;
  const target = a.target!;
  const inputShape = a.shape;
  return record('transpose', out, [target], [], (grad) => {
    const into = target.begin();
    kernels().strided(into.memory, grad.memory, inputShape, swapped(stridesOf(shape), from, to), 0);
    target.end(into);
  });
}

function swapped(values: readonly number[], i: number, j: number): number[] {
  return values.with(i, values[j]!).with(j, values[i]!);
}

/** The transpose of a matrix, as a copy. */
export function t(a: Tensor): Tensor {
  if (a.rank !== 2) throw needsRank('t', 2, a.shape);
  return transpose(a, 0, 1);
}
