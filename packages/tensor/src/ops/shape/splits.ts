// Splits tensors into parts of nearly one size, or between positions.

import { unevenSplit } from '../../checks/array-errors.ts';
import { checkListed } from '../../core/host-numbers.ts';
import { checkedDim } from '../../core/shape.ts';
import { Tensor } from '../../core/tensor.ts';
import { badOption, needsIndex, needsRank, shown } from '../../errors.ts';
import { requireTensor } from '../elementwise/convert.ts';
import { narrow } from './views.ts';

/** The number of parts, or the positions between them. */
export type Sections = number | readonly number[] | Tensor;

/** Returns the numbers of a tensor, which the host reads. */
function read(op: string, sections: Sections): number | readonly number[] {
  if (!(sections instanceof Tensor)) return sections;
  if (sections.dtype !== 'int64' && sections.dtype !== 'int32') throw needsIndex(op, sections.dtype);
  if (sections.rank > 1) throw needsRank(`${op}: sections`, '0 or 1', sections.shape);
  return sections.toArray() as number | number[];
}

function evenEnds(op: string, size: number, count: number): number[] {
  if (!Number.isSafeInteger(count) || count < 1)
    throw badOption(`${op}: sections`, 'an integer ≥ 1, or a list of positions', shown(count));
  checkListed(count, 2 ** 22);
  const least = Math.floor(size / count);
  return Array.from({ length: count }, (_, i) => (i + 1) * least + Math.min(i + 1, size % count));
}

function givenEnds(op: string, size: number, positions: readonly number[]): number[] {
  if (!Array.isArray(positions) || !positions.every(Number.isSafeInteger))
    throw badOption(`${op}: sections`, 'an integer ≥ 1, or a list of positions', shown(positions));
  const ends = positions.map((at) => Math.min(Math.max(at < 0 ? at + size : at, 0), size));
  return [...ends, size];
}

/**
 * Splits `a` along `dim` into `sections` parts, of which the first ones have one element more where the size is no
 * multiple; or before the given positions, as slices in Python would: negative ones count from the end, and a part is
 * empty where they go back. The parts share memory with `a`. Waits for positions in a tensor.
 */
export function tensorSplit(a: Tensor, sections: Sections, dim = 0): Tensor[] {
  requireTensor('tensorSplit', a);
  return parts('tensorSplit', a, read('tensorSplit', sections), checkedDim('tensorSplit', dim, a.rank));
}

function parts(op: string, a: Tensor, sections: number | readonly number[], dim: number): Tensor[] {
  const size = a.shape[dim]!;
  const isCount = typeof sections === 'number';
  const ends = isCount ? evenEnds(op, size, sections) : givenEnds(op, size, sections);
  return ends.map((end, i) => {
    const start = i === 0 ? 0 : ends[i - 1]!;
    return narrow(a, dim, start, Math.max(0, end - start));
  });
}

/** Splits along `dim`, into a number of parts that all have one size, or before positions. */
function evenly(op: string, a: Tensor, sections: number | readonly number[], dim: number): Tensor[] {
  const size = a.shape[dim]!;
  if (typeof sections === 'number' && sections > 0 && size % sections !== 0)
    throw unevenSplit(op, dim, size, sections);
  return parts(op, a, sections, dim);
}

/**
 * Splits a vector along its only dimension, and others along the second one: into parts of one size, or before
 * positions. The parts share memory with `a`.
 */
export function hsplit(a: Tensor, sections: number | readonly number[]): Tensor[] {
  requireTensor('hsplit', a);
  if (a.rank === 0) throw needsRank('hsplit', 'at least 1', a.shape);
  return evenly('hsplit', a, sections, a.rank === 1 ? 0 : 1);
}

/** Splits a tensor of at least 2 dimensions along the first one, as hsplit() does. */
export function vsplit(a: Tensor, sections: number | readonly number[]): Tensor[] {
  requireTensor('vsplit', a);
  if (a.rank < 2) throw needsRank('vsplit', 'at least 2', a.shape);
  return evenly('vsplit', a, sections, 0);
}

/** Splits a tensor of at least 3 dimensions along the third one, as hsplit() does. */
export function dsplit(a: Tensor, sections: number | readonly number[]): Tensor[] {
  requireTensor('dsplit', a);
  if (a.rank < 3) throw needsRank('dsplit', 'at least 3', a.shape);
  return evenly('dsplit', a, sections, 2);
}
