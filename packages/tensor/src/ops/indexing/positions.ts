// Turns index tensors into positions: int64 numbers that count the elements of the indexed dimensions as if these were
// joined to one. In host memory the indices are checked here. On a device, those out of range become −1, which the
// kernels report at the next wait.
import { broadcastShapes, countOf, type Shape } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { positionOutOfRange } from '../../errors.ts';
import { add, ge, logicalAnd, lt, mul } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { contiguous, to } from '../elementwise/convert.ts';
import { expand } from '../shape/views.ts';
import type { TensorIndex } from './index-list.ts';

/** int64 memory of the host as pairs of 32-bit words, low first, so that no BigInt is made for each element. */
function wordsOf(a: Tensor): Int32Array {
  const { memory, offset } = a.strided;
  const { buffer, byteOffset } = memory.host;
  return new Int32Array(buffer as ArrayBuffer, byteOffset + 8 * offset, 2 * a.count);
}

/** Writes positions, which are integers in [0, 2^53), to a new tensor in host memory. */
export function positionsOf(values: ArrayLike<number>, shape: Shape): Tensor {
  const out = empty('int64', shape);
  const words = wordsOf(out);
  for (let i = 0; i < values.length; i++) {
    words[2 * i] = values[i]! | 0;
    words[2 * i + 1] = Math.floor(values[i]! / 2 ** 32);
  }
  return out;
}

/** Returns the positions of the true elements of a mask, in order. Waits for the device of the mask. */
export function whereTrue(mask: Tensor): Float64Array {
  const local = contiguous(to(mask, 'cpu'));
  const { memory, offset } = local.strided;
  const bytes = memory.host as Uint8Array;
  let count = 0;
  for (let i = 0; i < local.count; i++) count += bytes[offset + i]!;
  const found = new Float64Array(count);
  for (let i = 0, at = 0; at < count; i++) if (bytes[offset + i] !== 0) found[at++] = i;
  return found;
}

/** Returns the result of whereTrue() as a tensor on the mask's device. */
export function truePositions(mask: Tensor): Tensor {
  const found = whereTrue(mask);
  return to(positionsOf(found, [found.length]), mask.device);
}

/** Adds the positions along one dimension to those of the dimensions before it. Negative ones count from the end. */
function addOnHost(op: string, totals: Float64Array, index: Tensor, size: number): void {
  const words = wordsOf(index);
  for (let i = 0; i < totals.length; i++) {
    const value = words[2 * i + 1]! * 2 ** 32 + (words[2 * i]! >>> 0);
    const at = value < 0 ? value + size : value;
    if (at < 0 || at >= size) throw positionOutOfRange(op, value, i, size);
    totals[i] = totals[i]! * size + at;
  }
}

function addOnDevice(total: Tensor | null, index: Tensor, size: number): Tensor {
  const at = where(lt(index, 0), add(index, size), index);
  const sum = total === null ? at : add(mul(total, size), at);
  const isInside = logicalAnd(ge(at, 0), lt(at, size));
  return where(total === null ? isInside : logicalAnd(isInside, ge(total, 0)), sum, -1);
}

/**
 * Returns the positions that `tensorIndices` name together, in the shape to which all indices are broadcast. A mask
 * counts as the list of the positions where it is true. May return the index itself. All tensors belong to the
 * innermost scope.
 */
export function joinedPositions(op: string, tensorIndices: readonly TensorIndex[]): Tensor {
  const indices = tensorIndices.map(({ index }) =>
    index.dtype === 'bool' ? truePositions(index) : to(index, 'int64'),
  );
  const joined = indices.reduce<Shape>((shape, index) => broadcastShapes(op, shape, index.shape), []);
  const [first, ...others] = indices.map((index) => contiguous(expand(index, joined)));
  if (others.length === 0 && tensorIndices[0]!.index.dtype === 'bool') return first!;
  if (first!.device !== 'cpu') {
    const start = addOnDevice(null, first!, tensorIndices[0]!.size);
    return others.reduce((total, index, i) => addOnDevice(total, index, tensorIndices[i + 1]!.size), start);
  }
  const totals = new Float64Array(countOf(joined));
  for (const [i, index] of [first!, ...others].entries())
    addOnHost(op, totals, index, tensorIndices[i]!.size);
  return positionsOf(totals, joined);
}
