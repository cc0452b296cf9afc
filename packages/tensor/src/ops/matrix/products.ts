// Products of vectors and matrices under their own names: matmul(), mul() and sum() behind checks of the shapes.

import { contractedSizes } from '../../checks/array-errors.ts';
import { scope } from '../../core/context.ts';
import { checkedDim, checkedDims, countOf } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, differentShapes, mixedDtypes, needsRank, shown } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { mul, sub } from '../elementwise/binary.ts';
import { requireFactors, requireNumbers, requireTensor, to } from '../elementwise/convert.ts';
import { sum } from '../reduce/reduce.ts';
import { roll } from '../shape/rearrange.ts';
import { permute, reshape, unsqueeze } from '../shape/views.ts';
import { matmul } from './matmul.ts';

/** Throws unless both are tensors of these ranks. */
function checkRanks(op: string, a: Tensor, aRank: number, b: Tensor, bRank: number): void {
  requireTensor(op, a);
  requireTensor(op, b);
  if (a.rank !== aRank) throw needsRank(`${op}: the first operand`, aRank, a.shape);
  if (b.rank !== bRank) throw needsRank(`${op}: the second operand`, bRank, b.shape);
}

/** Multiplies each element of a vector by each of another: [m], [n] → [m, n]. */
export function outer(a: Tensor, b: Tensor): Tensor {
  checkRanks('outer', a, 1, b, 1);
  return scope(() => mul(unsqueeze(a, 1), b));
}

/** Multiplies two matrices, as matmul() does: [m, k], [k, n] → [m, n]. */
export function mm(a: Tensor, b: Tensor): Tensor {
  checkRanks('mm', a, 2, b, 2);
  return matmul(a, b);
}

/** Multiplies two batches of matrices of the same length, without broadcasting: [b, m, k], [b, k, n] → [b, m, n]. */
export function bmm(a: Tensor, b: Tensor): Tensor {
  checkRanks('bmm', a, 3, b, 3);
  if (a.shape[0] !== b.shape[0]) throw contractedSizes('bmm', a.shape, b.shape);
  return matmul(a, b);
}

/** Multiplies a matrix by a vector: [m, k], [k] → [m]. */
export function mv(a: Tensor, b: Tensor): Tensor {
  checkRanks('mv', a, 2, b, 1);
  return matmul(a, b);
}

/** Sums the products of the elements of two vectors of the same length. */
export function dot(a: Tensor, b: Tensor): Tensor {
  checkRanks('dot', a, 1, b, 1);
  return recast('widest', [a, b], (x, y) => matmul(x!, y!)) ?? matmul(a, b);
}

/** Computes dot(), as all numbers here are real. */
export function vdot(a: Tensor, b: Tensor): Tensor {
  checkRanks('vdot', a, 1, b, 1);
  return dot(a, b);
}

/** Sums products along the last dimensions: [..., k], [..., k]. A tensor without dimensions multiplies all elements. */
export function inner(a: Tensor, b: Tensor): Tensor {
  requireTensor('inner', a);
  requireTensor('inner', b);
  if (a.rank === 0 || b.rank === 0) return mul(a, b);
  if (a.shape.at(-1) !== b.shape.at(-1)) throw contractedSizes('inner', a.shape, b.shape);
  return contracted('inner', a, [a.rank - 1], b, [b.rank - 1]);
}

/**
 * Sums products along several dimensions of both: the last `dims` ones of `a` and the first ones of `b`, or those that
 * two lists name, in pairs. The result has the other dimensions of `a`, then those of `b`. A size of 1 is broadcast.
 */
export function tensordot(
  a: Tensor,
  b: Tensor,
  dims: number | readonly [readonly number[], readonly number[]] = 2,
): Tensor {
  const op = 'tensordot';
  requireTensor(op, a);
  requireTensor(op, b);
  if (typeof dims === 'number') {
    if (!Number.isSafeInteger(dims) || dims < 0 || dims > Math.min(a.rank, b.rank))
      throw badOption(`${op}: dims`, `an integer from 0 to ${Math.min(a.rank, b.rank)}`, shown(dims));
    const own = Array.from({ length: dims }, (_, d) => d);
    return contracted(
      op,
      a,
      own.map((d) => a.rank - dims + d),
      b,
      own,
    );
  }
  if (!Array.isArray(dims) || dims.length !== 2)
    throw badOption(`${op}: dims`, 'a number or two lists of dimensions', shown(dims));
  const [left, right] = [checkedDims(op, dims[0], a.rank), checkedDims(op, dims[1], b.rank)];
  if (left.length !== right.length) throw badOption(`${op}: dims`, 'two lists of one length', shown(dims));
  return contracted(op, a, left, b, right);
}

function contracted(
  op: string,
  a: Tensor,
  aDims: readonly number[],
  b: Tensor,
  bDims: readonly number[],
): Tensor {
  const lowered = recast('low', [a, b], (x, y) => contracted(op, x!, aDims, y!, bDims));
  if (lowered) return lowered;
  if (a.dtype !== b.dtype) throw mixedDtypes(op, a.dtype, b.dtype);
  requireFactors(op, a, b);
  const pairs = aDims.map((dim, i) => [a.shape[dim]!, b.shape[bDims[i]!]!] as const);
  if (pairs.some(([x, y]) => x !== y && x !== 1 && y !== 1)) throw contractedSizes(op, a.shape, b.shape);
  return scope(() => {
    // A dimension that the other tensor would broadcast is summed first.
    const stretched = (x: Tensor, dims: readonly number[], own: 0 | 1): Tensor => {
      const summed = dims.filter((_, i) => pairs[i]![own] !== 1 && pairs[i]![1 - own] === 1);
      return summed.length === 0 ? x : to(sum(x, summed, true), x.dtype);
    };
    const [x, y] = [stretched(a, aDims, 0), stretched(b, bDims, 1)];
    const rest = (rank: number, dims: readonly number[]): number[] =>
      Array.from({ length: rank }, (_, d) => d).filter((d) => !dims.includes(d));
    const [rows, cols] = [rest(a.rank, aDims), rest(b.rank, bDims)];
    const shape = [...rows.map((d) => x.shape[d]!), ...cols.map((d) => y.shape[d]!)];
    const inner = countOf(aDims.map((d) => x.shape[d]!));
    const left = reshape(permute(x, [...rows, ...aDims]), [countOf(rows.map((d) => x.shape[d]!)), inner]);
    const right = reshape(permute(y, [...bDims, ...cols]), [inner, countOf(cols.map((d) => y.shape[d]!))]);
    return reshape(matmul(left, right), shape);
  });
}

/**
 * Computes the Kronecker product: replaces each element of `a` by its product with all of `b`. Missing dimensions are
 * added in front.
 */
export function kron(a: Tensor, b: Tensor): Tensor {
  requireTensor('kron', a);
  requireTensor('kron', b);
  const rank = Math.max(a.rank, b.rank);
  const sizes = (x: Tensor): number[] => [...new Array<number>(rank - x.rank).fill(1), ...x.shape];
  const [left, right] = [sizes(a), sizes(b)];
  return scope(() =>
    reshape(
      mul(
        reshape(
          a,
          left.flatMap((size) => [size, 1]),
        ),
        reshape(
          b,
          right.flatMap((size) => [1, size]),
        ),
      ),
      left.map((size, d) => size * right[d]!),
    ),
  );
}

/** Computes cross products of vectors of 3 elements along `dim`, with the other dimensions broadcast. */
export function cross(a: Tensor, b: Tensor, dim = -1): Tensor {
  const raised = recast('widest', [a, b], (x, y) => cross(x!, y!, dim));
  if (raised) return raised;
  requireTensor('cross', a);
  requireTensor('cross', b);
  requireNumbers('cross', a);
  if (a.dtype !== b.dtype) throw mixedDtypes('cross', a.dtype, b.dtype);
  if (a.rank !== b.rank) throw differentShapes('cross', a.shape, b.shape);
  const at = checkedDim('cross', dim, a.rank);
  if (a.shape[at] !== 3 || b.shape[at] !== 3) throw contractedSizes('cross', a.shape, b.shape);
  const turned = (x: Tensor, by: number): Tensor => roll(x, -by, at);
  return scope(() => sub(mul(turned(a, 1), turned(b, 2)), mul(turned(a, 2), turned(b, 1))));
}
