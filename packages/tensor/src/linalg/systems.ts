// Systems of equations with square matrices, inverses and determinants. Names and semantics are torch.linalg's.
import { checkOptions, optionChecks } from '../checks/options.ts';
import { checkValue, flag } from '../checks/value-checks.ts';
import type { Shape } from '../core/shape.ts';
import { sameShape } from '../core/shape.ts';
import type { Tensor } from '../core/tensor.ts';
import { requireOperand } from '../ops/elementwise/convert.ts';
import { squeeze, transpose, unsqueeze } from '../ops/index.ts';
import { batched } from './batch.ts';
import {
  notPositiveDefinite,
  requireMatrices,
  requireSameDtype,
  shapesDoNotFit,
  singular,
} from './checks.ts';
import { choleskyOf, type Lu, luOf, luSolve, substituted } from './dense/factor.ts';
import { svdOf } from './dense/jacobi.ts';
import { Matrix } from './dense/matrix.ts';

/** Options of cholesky(). */
export interface CholeskyOptions {
  /** Whether to return the upper factor, whose transpose times itself is the matrix. Default false. */
  readonly upper?: boolean;
}
const choleskyOptions = optionChecks<CholeskyOptions>({ upper: flag });

/**
 * Returns the lower triangular L with L Lᵀ = a for symmetric positive definite matrices [..., n, n], of which it reads
 * the lower triangle. Throws ERR_TENSOR_LINALG if one is not positive definite.
 */
export function cholesky(a: Tensor, options: CholeskyOptions = {}): Tensor {
  requireMatrices('linalg.cholesky', a, true);
  checkOptions('linalg.cholesky', options, choleskyOptions);
  const size = a.shape.at(-1)!;
  const { upper = false } = options;
  return batched('linalg.cholesky', [a], [[size, size]], ([x], index) => {
    const lower = choleskyOf(upper ? x!.t : x!);
    if (typeof lower === 'number') throw notPositiveDefinite('linalg.cholesky', a, index, lower);
    return {
      outs: [upper ? lower.t : lower],
      backward: ([grad]) => {
        const inner = lower.t.times(upper ? grad!.t : grad!);
        const half = inner.map((value, i, j) => (i > j ? value : i === j ? value / 2 : 0));
        const left = substituted(lower.t, half, { upper: true, unit: false });
        const both = substituted(lower.t, left.t, { upper: true, unit: false });
        return [both.plus(both.t).map((value) => value / 2)];
      },
    };
  })[0]!;
}

const pivoted = (op: string, a: Tensor, x: Matrix, index: number): Lu => {
  const lu = luOf(x);
  if (lu.zeroAt > 0) throw singular(op, a, index, lu.zeroAt);
  return lu;
};

/** Options of solve(). */
export interface SolveOptions {
  /** Whether the unknown is on the right of the matrix, a x = b; otherwise x a = b. Default true. */
  readonly left?: boolean;
}
const solveOptions = optionChecks<SolveOptions>({ left: flag });

/**
 * Returns x with a x = b for square matrices [..., n, n] and b of [..., n, k], or of [n] or [..., n] with exactly the
 * leading sizes of `a`. Throws ERR_TENSOR_LINALG if a matrix is singular.
 */
export function solve(a: Tensor, b: Tensor, options: SolveOptions = {}): Tensor {
  requireMatrices('linalg.solve', a, true);
  requireOperand('linalg.solve', 'b', b);
  checkOptions('linalg.solve', options, solveOptions);
  const isVector = b.rank === 1 || (b.rank === a.rank - 1 && sameShape(b.shape, a.shape.slice(0, -1)));
  const right = isVector ? unsqueeze(b, -1) : b;
  requireMatrices('linalg.solve', right);
  requireSameDtype('linalg.solve', a, b);
  const { left = true } = options;
  if (isVector && !left) throw shapesDoNotFit('linalg.solve', a.shape, b.shape);
  if (!left) return transpose(solve(transpose(a, -2, -1), transpose(b, -2, -1)), -2, -1);
  if (right.shape.at(-2) !== a.shape.at(-1)) throw shapesDoNotFit('linalg.solve', a.shape, b.shape);
  const [out] = batched('linalg.solve', [a, right], [right.shape.slice(-2)], ([x, y], index) => {
    const found = luSolve(pivoted('linalg.solve', a, x!, index), y!);
    return {
      outs: [found],
      backward: ([grad]) => {
        const back = luSolve(luOf(x!.t), grad!);
        return [back.times(found.t).map((value) => -value), back];
      },
    };
  });
  return isVector ? squeeze(out!, -1) : out!;
}

/** Options of solveTriangular(). */
export interface SolveTriangularOptions {
  /** Whether the matrix is upper triangular; the other triangle is not read. */
  readonly upper: boolean;
  /** Whether the unknown is on the right of the matrix, a x = b; otherwise x a = b. Default true. */
  readonly left?: boolean;
  /** Whether the diagonal counts as ones and is not read. Default false. */
  readonly unitriangular?: boolean;
}
const triangularOptions = optionChecks<SolveTriangularOptions>({
  ...{ upper: flag, left: flag, unitriangular: flag },
});

/**
 * Returns x with a x = b for triangular matrices [..., n, n] and b of [..., n, k]. A zero on the diagonal makes
 * infinite or NaN results.
 */
export function solveTriangular(a: Tensor, b: Tensor, options: SolveTriangularOptions): Tensor {
  requireMatrices('linalg.solveTriangular', a, true);
  requireMatrices('linalg.solveTriangular', b);
  requireSameDtype('linalg.solveTriangular', a, b);
  checkOptions('linalg.solveTriangular', options, triangularOptions);
  checkValue('linalg.solveTriangular: upper', options?.upper, flag);
  const { upper, left = true, unitriangular: unit = false } = options;
  if (!left) {
    const turned = { upper: !upper, unitriangular: unit };
    return transpose(solveTriangular(transpose(a, -2, -1), transpose(b, -2, -1), turned), -2, -1);
  }
  if (b.shape.at(-2) !== a.shape.at(-1)) throw shapesDoNotFit('linalg.solveTriangular', a.shape, b.shape);
  return batched('linalg.solveTriangular', [a, b], [b.shape.slice(-2)], ([x, y]) => {
    const found = substituted(x!, y!, { upper, unit });
    return {
      outs: [found],
      backward: ([grad]) => {
        const back = substituted(x!.t, grad!, { upper: !upper, unit });
        const isRead = (i: number, j: number): boolean => (upper ? i < j : i > j) || (i === j && !unit);
        return [back.times(found.t).map((value, i, j) => (isRead(i, j) ? -value : 0)), back];
      },
    };
  })[0]!;
}

/** Returns the inverses of square matrices [..., n, n]. Throws ERR_TENSOR_LINALG if one is singular. */
export function inv(a: Tensor): Tensor {
  return inverted('linalg.inv', a, (lu, index) => {
    if (lu.zeroAt > 0) throw singular('linalg.inv', a, index, lu.zeroAt);
  });
}

/** Returns the inverses of square matrices; infinities for singular ones, of which a condition number is made. */
export const invOrInfinite = (a: Tensor): Tensor => inverted('linalg.cond', a, () => {});

function inverted(op: string, a: Tensor, check: (lu: Lu, index: number) => void): Tensor {
  requireMatrices(op, a, true);
  const size = a.shape.at(-1)!;
  return batched(op, [a], [[size, size]], ([x], index) => {
    const lu = luOf(x!);
    check(lu, index);
    const found = lu.zeroAt > 0 ? x!.map(() => Infinity) : luSolve(lu, Matrix.identity(size));
    return {
      outs: [found],
      backward: ([grad]) => [
        found.t
          .times(grad!)
          .times(found.t)
          .map((value) => -value),
      ],
    };
  })[0]!;
}

/** Returns the product of the pivots and the sign of the row exchanges. */
const diagonalOf = ({ factors }: Lu): number[] =>
  Array.from({ length: factors.rows }, (_, i) => factors.at(i, i));

/** Returns the determinants of square matrices [..., n, n]: one number each. */
export function det(a: Tensor): Tensor {
  requireMatrices('linalg.det', a, true);
  const none: Shape = [];
  return batched('linalg.det', [a], [none], ([x]) => {
    const lu = luOf(x!);
    const value = diagonalOf(lu).reduce((product, pivot) => product * pivot, lu.sign);
    return {
      outs: [new Matrix(1, 1, Float64Array.of(value))],
      backward: ([grad]) => [cofactors(x!).map((cofactor) => cofactor * grad!.data[0]!)],
    };
  })[0]!;
}

/** Returns the gradient of the determinant, which exists for singular matrices, too. */
function cofactors(x: Matrix): Matrix {
  if (!x.isFinite) return x.map(() => NaN);
  const { u, s, vh } = svdOf(x);
  const sign = [u, vh].reduce((product, q) => {
    const lu = luOf(q);
    return product * Math.sign(diagonalOf(lu).reduce((a, b) => a * Math.sign(b), lu.sign));
  }, 1);
  const others = Array.from(s, (_, i) =>
    s.reduce((product, value, j) => (i === j ? product : product * value), 1),
  );
  return u
    .times(Matrix.diagonal(others))
    .times(vh)
    .map((value) => value * sign);
}

/** Sign and logarithm of a determinant. */
export interface SignAndLog {
  /** 1, −1, or 0 for singular matrices. It has no gradient. */
  readonly sign: Tensor;
  /** The natural logarithm of the magnitude; −∞ for singular matrices. */
  readonly logAbsDet: Tensor;
}

/** Returns sign and logarithm of the determinants of square matrices [..., n, n], which do not overflow. */
export function slogdet(a: Tensor): SignAndLog {
  requireMatrices('linalg.slogdet', a, true);
  const run = (x: Tensor, pick: 0 | 1): Tensor =>
    batched('linalg.slogdet', [x], [[]], ([matrix]) => {
      const lu = luOf(matrix!);
      const pivots = diagonalOf(lu);
      const value =
        pick === 0
          ? pivots.reduce((sign, pivot) => sign * Math.sign(pivot), lu.sign)
          : pivots.reduce((sum, pivot) => sum + Math.log(Math.abs(pivot)), 0);
      return {
        outs: [new Matrix(1, 1, Float64Array.of(value))],
        backward: ([grad]) => {
          const inverse = luSolve(lu, Matrix.identity(matrix!.rows));
          return [inverse.t.map((x) => x * grad!.data[0]!)];
        },
      };
    })[0]!;
  return { sign: run(a.detach(), 0), logAbsDet: run(a, 1) };
}
