// Reads elements and rows by index. Indices are int32 or int64. In host memory they are checked
// before a kernel reads them; on a device, the kernel checks them. As in PyTorch, negative ones count from the end in
// take() and takeAlongDim(), and the others refuse them.
import { kernels } from '../../backends/index.ts';
import type { LookupSizes } from '../../backends/kernels.ts';
import { scope } from '../../core/context.ts';
import { broadcastShapes, checkedDim, countOf, type Shape } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { badOption, indexOutOfRange, lookupShapes, needsIndex, needsRank, shown } from '../../errors.ts';
import { contiguous, requireTensor, to } from '../elementwise/convert.ts';
import { max } from '../reduce/reduce.ts';
import { expand, flatten, narrow, reshape } from '../shape/views.ts';
import { lookedUp } from './moves.ts';
import { joinedPositions } from './positions.ts';

/** Throws unless all elements of `index`, which is dense, are in [0, size). Indices on a device are not read here. */
export function checkIndices(op: string, index: Tensor, size: number, complain = indexOutOfRange): void {
  const { memory, offset } = index.strided;
  // On a device the kernels check indices themselves; an error is thrown at the next wait.
  if (memory.device !== 'cpu') return;
  const { host } = memory;
  // Reads an int64 as two halves, low first, so that no BigInt is made for each element.
  const isWide = host instanceof BigInt64Array;
  const words = isWide ? new Int32Array(host.buffer, host.byteOffset, host.length * 2) : host;
  const step = isWide ? 2 : 1;
  for (let i = 0; i < index.count; i++) {
    const word = words[(offset + i) * step] as number;
    const isInside = word >= 0 && word < size && (!isWide || words[(offset + i) * 2 + 1] === 0);
    if (!isInside) throw complain(op, host[offset + i]!, i, size);
  }
}

function requireIndex(op: string, index: Tensor): void {
  requireTensor(op, index);
  if (index.dtype !== 'int32' && index.dtype !== 'int64') throw needsIndex(op, index.dtype);
}

/** Returns the positions that an index names, as int64 in [0, size). Negative ones count from the end. */
export function countedFromEnd(op: string, index: Tensor, size: number): Tensor {
  requireIndex(op, index);
  return joinedPositions(op, [{ index, dim: 0, span: 1, size }]);
}

/** Returns a checked dense int64 copy of an index, or the index itself if it is one. */
export function prepared(op: string, index: Tensor, size: number): Tensor {
  requireIndex(op, index);
  const ready = contiguous(to(index, 'int64'));
  checkIndices(op, ready, size);
  return ready;
}

export const sizesOf = (shape: Shape, dim: number, count: number, perElement: boolean): LookupSizes => ({
  outer: countOf(shape.slice(0, dim)),
  count,
  size: shape[dim]!,
  inner: countOf(shape.slice(dim + 1)),
  perElement,
});

export function disposeCopies(copies: readonly Tensor[], originals: readonly Tensor[]): void {
  for (const copy of copies) if (!originals.includes(copy)) copy.dispose();
}

/** Returns a tensor without dimensions as a row of one element, as PyTorch does. */
export const asRow = (a: Tensor): Tensor => (a.rank === 0 ? reshape(a, [1]) : a);

/** Selects slices of `a` along `dim` by `index` [count]; for a single slice, the index may have no dimension. */
export function indexSelect(a: Tensor, dim: number, index: Tensor): Tensor {
  requireTensor('indexSelect', a);
  requireTensor('indexSelect', index);
  if (a.rank === 0 && index.count !== 1) throw lookupShapes('indexSelect', a.shape, index.shape);
  if (a.rank === 0 || index.rank === 0)
    return scope(() => {
      const rows = indexSelect(asRow(a), dim, asRow(index));
      return a.rank === 0 ? reshape(rows, []) : rows;
    });
  const at = checkedDim('indexSelect', dim, a.rank);
  if (index.rank !== 1) throw needsRank('indexSelect: index', 1, index.shape);
  const positions = prepared('indexSelect', index, a.shape[at]!);
  const dense = contiguous(a);
  const sizes = sizesOf(a.shape, at, index.count, false);
  const out = lookedUp('indexSelect', dense, positions, a.shape.with(at, index.count), sizes);
  disposeCopies([positions, dense], [index, a]);
  return out;
}

/** Selects a row of `weight` [rows, width] for each element of `index`. Returns [...index, width]. */
export function embedding(index: Tensor, weight: Tensor): Tensor {
  requireTensor('embedding', index);
  requireTensor('embedding', weight);
  if (weight.rank !== 2) throw needsRank('embedding: weight', 2, weight.shape);
  const positions = prepared('embedding', index, weight.shape[0]!);
  const dense = contiguous(weight);
  const sizes = sizesOf(weight.shape, 0, index.count, false);
  const out = lookedUp('embedding', dense, positions, [...index.shape, weight.shape[1]!], sizes);
  disposeCopies([positions, dense], [index, weight]);
  return out;
}

/** Returns a view of the first elements of `a` in every dimension but `dim`, as many as `index` has there. */
export function fitted(op: string, a: Tensor, dim: number | null, index: Tensor): Tensor {
  const fits = a.rank === index.rank && a.shape.every((size, d) => d === dim || index.shape[d]! <= size);
  if (!fits) throw lookupShapes(op, a.shape, index.shape);
  let part = a;
  for (const [d, size] of index.shape.entries()) {
    if (d === dim || size === a.shape[d]) continue;
    const smaller = narrow(part, d, 0, size);
    if (part !== a) part.dispose();
    part = smaller;
  }
  return part;
}

/** Does the same as fitted, with a dense result. */
export function denseFitted(op: string, a: Tensor, dim: number | null, index: Tensor): Tensor {
  const part = fitted(op, a, dim, index);
  const dense = contiguous(part);
  if (part !== a && dense !== part) part.dispose();
  return dense;
}

/** Gathers out[i][j][k] = a[index[i][j][k]][j][k] for dim 0, and so on. The result has the shape of `index`. */
export function gather(a: Tensor, dim: number, index: Tensor): Tensor {
  requireTensor('gather', a);
  requireTensor('gather', index);
  if (a.rank === 0 || index.rank === 0)
    return scope(() => reshape(gather(asRow(a), dim, asRow(index)), index.shape));
  const at = checkedDim('gather', dim, a.rank);
  // An empty index may have any shape.
  if (index.count === 0) return scope(() => reshape(narrow(flatten(a), 0, 0, 0), index.shape));
  const positions = prepared('gather', index, a.shape[at]!);
  const dense = denseFitted('gather', a, at, index);
  const out = lookedUp(
    'gather',
    dense,
    positions,
    index.shape,
    sizesOf(dense.shape, at, index.shape[at]!, true),
  );
  disposeCopies([positions, dense], [index, a]);
  return out;
}

/**
 * Gathers along `dim`, with `a` and `index` broadcast to each other in the other dimensions: sorts a tensor by the
 * indices that sort() or argmax() with keepDim gave. Negative indices count from the end. Without `dim`, both count as
 * flat, and negative indices throw, as in PyTorch.
 */
export function takeAlongDim(a: Tensor, index: Tensor, dim?: number): Tensor {
  requireTensor('takeAlongDim', a);
  requireTensor('takeAlongDim', index);
  if (dim === undefined) return scope(() => gather(flatten(a), 0, flatten(index)));
  if (a.rank !== index.rank) throw lookupShapes('takeAlongDim', a.shape, index.shape);
  const at = checkedDim('takeAlongDim', dim, a.rank);
  const others = broadcastShapes('takeAlongDim', a.shape.with(at, 1), index.shape.with(at, 1));
  return scope(() => {
    const stretchedTo = (b: Tensor): Tensor => expand(b, others.with(at, b.shape[at]!));
    const positions = countedFromEnd('takeAlongDim', index, a.shape[at]!);
    return gather(stretchedTo(a), at, stretchedTo(positions));
  });
}

/**
 * Returns the elements of `a`, counted as if it were flat, at `index`, whose shape the result has. Negative indices
 * count from the end.
 */
export function take(a: Tensor, index: Tensor): Tensor {
  requireTensor('take', a);
  requireTensor('take', index);
  return scope(() => {
    const flat = flatten(a);
    const positions = countedFromEnd('take', index, a.count);
    const sizes = { outer: 1, count: index.count, size: a.count, inner: 1, perElement: false };
    return lookedUp('take', contiguous(flat), positions, index.shape, sizes);
  });
}

/**
 * Returns int64 zeros with a 1 at the position that each element of `labels` names along a new last dimension. Without
 * `classes`, the largest label decides their number; on a device this waits until the labels are known.
 */
export function oneHot(labels: Tensor, classes = classesOf(labels)): Tensor {
  if (!Number.isSafeInteger(classes) || classes < 1)
    throw badOption('oneHot: classes', 'an integer ≥ 1', shown(classes));
  const positions = prepared('oneHot', labels, classes);
  const out = empty('int64', [...labels.shape, classes], labels.device);
  const ones = empty('int64', labels.shape, labels.device);
  kernels().copy(out.shape, out.strided, 0);
  kernels().copy(ones.shape, ones.strided, 1);
  const sizes = { outer: labels.count, count: 1, size: classes, inner: 1, perElement: true };
  kernels().scatter({ out: out.strided, a: ones.strided, index: positions.strided }, { ...sizes, op: 'add' });
  ones.dispose();
  disposeCopies([positions], [labels]);
  return out;
}

/** Returns one more than the largest label, or 1 if all are negative; these are refused later. */
function classesOf(labels: Tensor): number {
  requireTensor('oneHot', labels);
  requireIndex('oneHot', labels);
  if (labels.count === 0) throw badOption('oneHot: classes', 'an integer ≥ 1, as there is no label', 'none');
  return scope(() => Math.max(1, max(labels).item() + 1));
}
