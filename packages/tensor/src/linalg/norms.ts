// Norms of vectors and matrices, and condition numbers. Names and semantics are torch.linalg's.
import { checkOptions, optionChecks } from '../checks/options.ts';
import { aNumber, type Check, checkValue, flag } from '../checks/value-checks.ts';
import { zeros } from '../core/creation.ts';
import type { Dims } from '../core/op-options.ts';
import type { Tensor } from '../core/tensor.ts';
import { badOption, shown } from '../errors.ts';
import { requireFloat } from '../ops/elementwise/convert.ts';
import {
  abs,
  div,
  max,
  min,
  mul,
  permute,
  reshape,
  sum,
  unsqueeze,
  norm as vectorNormOf,
} from '../ops/index.ts';
import { requireMatrices } from './checks.ts';
import { svdvals } from './decompositions.ts';
import { invOrInfinite } from './systems.ts';

/** Options of vectorNorm(). */
export interface VectorNormOptions {
  /** The order: any number, or Infinity or −Infinity. Default 2. */
  readonly ord?: number;
  /** Default false. */
  readonly keepDim?: boolean;
}
const vectorNormOptions = optionChecks<VectorNormOptions>({ ord: aNumber, keepDim: flag });

/** Returns (Σ |a|^ord)^(1/ord) over `dims`; over all elements if they are left out. */
export function vectorNorm(a: Tensor, dims?: Dims | null, options: VectorNormOptions = {}): Tensor {
  checkOptions('linalg.vectorNorm', options, vectorNormOptions);
  const { ord = 2, keepDim = false } = options;
  // As in PyTorch, the number of elements that are not 0 has no gradient.
  return vectorNormOf(ord === 0 ? a.detach() : a, dims ?? undefined, { p: ord, keepDim });
}

/** The orders of a matrix norm. */
export type MatrixOrd = 'fro' | 'nuc' | number;
const orders: readonly unknown[] = ['fro', 'nuc', 1, -1, 2, -2, Infinity, -Infinity];
const ordCheck: Check = {
  expected: "'fro', 'nuc', 1, -1, 2, -2, Infinity or -Infinity",
  fits: (value) => orders.includes(value),
};

/** Options of matrixNorm(). */
export interface MatrixNormOptions {
  /**
   * 'fro': the root of the sum of squares; 'nuc': the sum of the singular values; 2 and −2: the largest and the
   * smallest of them; 1 and −1: the largest and the smallest sum of magnitudes of a column; ±Infinity: of a row.
   * Default 'fro'.
   */
  readonly ord?: MatrixOrd;
  /** Default false. */
  readonly keepDim?: boolean;
}
const matrixNormOptions = optionChecks<MatrixNormOptions>({ ord: ordCheck, keepDim: flag });

/** Returns a norm of the matrices in two dimensions of a tensor; by default the last two. */
export function matrixNorm(
  a: Tensor,
  dims: readonly [number, number] = [-2, -1],
  options: MatrixNormOptions = {},
): Tensor {
  requireFloat('linalg.matrixNorm', a);
  checkOptions('linalg.matrixNorm', options, matrixNormOptions);
  checkValue('linalg.matrixNorm: dims', dims, {
    expected: 'two dimensions',
    fits: (value) => Array.isArray(value) && value.length === 2,
  });
  const { ord = 'fro', keepDim = false } = options;
  const [rows, cols] = dims.map((dim) => dimOf(a, dim)) as [number, number];
  if (rows === cols) throw badOption('linalg.matrixNorm: dims', 'two different dimensions', shown(dims));
  if (ord === 'fro') return vectorNormOf(a, [rows, cols], { keepDim });
  if (ord === 'nuc' || Math.abs(ord) === 2) return spectral(a, rows, cols, ord, keepDim);
  const [summed, other] = Math.abs(ord) === 1 ? [rows, cols] : [cols, rows];
  const sums = sum(abs(a), summed, true);
  const out = ord > 0 ? largest(sums, other, true) : min(sums, other, true);
  if (keepDim) return out;
  return reshape(
    out,
    a.shape.filter((_, dim) => dim !== rows && dim !== cols),
  );
}

/** Returns a dimension counted from the start. Throws unless the tensor has it. */
function dimOf({ rank }: Tensor, dim: number): number {
  if (Number.isInteger(dim) && dim >= -rank && dim < rank) return dim < 0 ? dim + rank : dim;
  throw badOption('linalg.matrixNorm: dims', `dimensions of a tensor of rank ${rank}`, shown(dim));
}

/** Returns the largest number along a dimension; 0 if there is none. */
const largest = (a: Tensor, dim: number, keepDim: boolean): Tensor =>
  a.shape.at(dim) === 0 ? sum(a.detach(), dim, keepDim) : max(a, dim, keepDim);

/** Returns a norm that is made of singular values. */
function spectral(a: Tensor, rows: number, cols: number, ord: MatrixOrd, keepDim: boolean): Tensor {
  const rest = a.shape.flatMap((_, dim) => (dim === rows || dim === cols ? [] : [dim]));
  const values = svdvals(permute(a, [...rest, rows, cols]));
  const out = ord === 'nuc' ? sum(values, -1) : ord === 2 ? largest(values, -1, false) : min(values, -1);
  if (!keepDim) return out;
  return [rows, cols].sort((x, y) => x - y).reduce((x, dim) => unsqueeze(x, dim), out);
}

/** Options of norm(). */
export interface AnyNormOptions {
  /** The order: null for the root of the sum of squares; else as for matrixNorm() or vectorNorm(). Default null. */
  readonly ord?: MatrixOrd | null;
  /** Default false. */
  readonly keepDim?: boolean;
}
const anyNormOptions = optionChecks<AnyNormOptions>({
  ord: {
    expected: "a number, 'fro', 'nuc' or null",
    fits: (value) => value === null || ordCheck.fits(value) || aNumber.fits(value),
  },
  keepDim: flag,
});

/**
 * Returns a norm over `dims`: of vectors for one dimension, of matrices for two. Without `dims` and with an order the
 * tensor must be a vector or a matrix; without both, it is the root of the sum of squares of all elements.
 */
export function norm(a: Tensor, dims?: Dims | null, options: AnyNormOptions = {}): Tensor {
  requireFloat('linalg.norm', a);
  checkOptions('linalg.norm', options, anyNormOptions);
  const { ord = null, keepDim = false } = options;
  const count = typeof dims === 'number' ? 1 : dims?.length;
  if (ord === null) return vectorNormOf(a, dims ?? undefined, { keepDim });
  const isMatrix = count === 2 || (count === undefined && a.rank === 2);
  if (isMatrix) {
    const pair = (count === undefined ? [-2, -1] : dims) as [number, number];
    return matrixNorm(a, pair, { ord, keepDim });
  }
  const isVector = count === 1 || (count === undefined && a.rank === 1);
  if (!isVector || typeof ord !== 'number')
    throw badOption(
      'linalg.norm: dims',
      `one or two dimensions that fit ord ${shown(ord)}`,
      shown(dims ?? a.shape),
    );
  return vectorNorm(a, dims, { ord, keepDim });
}

/**
 * Returns the condition numbers of matrices [..., m, n] in the norm `p`; null is 2. Other norms need square matrices,
 * and make infinity of singular ones. That of a matrix without elements is 0.
 */
export function cond(a: Tensor, p: MatrixOrd | null = null): Tensor {
  checkValue('linalg.cond: p', p ?? 2, ordCheck);
  requireMatrices('linalg.cond', a, p !== null && Math.abs(Number(p)) !== 2);
  if (a.count === 0) return zeros(a.shape.slice(0, -2), { dtype: a.dtype as 'float32' });
  if (p === null || p === 2 || p === -2) {
    const values = svdvals(a);
    const [most, least] = [max(values, -1), min(values, -1)];
    return p === -2 ? div(least, most) : div(most, least);
  }
  return mul(matrixNorm(a, [-2, -1], { ord: p }), matrixNorm(invOrInfinite(a), [-2, -1], { ord: p }));
}
