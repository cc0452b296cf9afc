// QR, eigenvalues of symmetric matrices, and singular values. Names and semantics are torch.linalg's.
import { checkOptions, optionChecks } from '../checks/options.ts';
import { flag, oneOf } from '../checks/value-checks.ts';
import type { Tensor } from '../core/tensor.ts';
import { batched } from './batch.ts';
import { noGradient, notFinite, requireMatrices } from './checks.ts';
import { qrOf, substituted } from './dense/factor.ts';
import { completeBasis, eighOf, svdOf } from './dense/jacobi.ts';
import { Matrix } from './dense/matrix.ts';

/** Options of qr(). */
export interface QrOptions {
  /**
   * 'reduced': Q of [..., m, k] and R of [..., k, n] with k the smaller size; 'complete': Q of [..., m, m] and R of
   * [..., m, n]; 'r': R as for 'reduced', and no Q. Default 'reduced'.
   */
  readonly mode?: 'reduced' | 'complete' | 'r';
}
const qrOptions = optionChecks<QrOptions>({ mode: oneOf('reduced', 'complete', 'r') });

/** The factors of a QR decomposition. */
export interface QAndR {
  /** Matrices with orthonormal columns, [..., m, k]; for the mode 'r', a tensor of shape [0]. */
  readonly Q: Tensor;
  /** Upper triangular matrices, [..., k, n]. k is the smaller size, for 'complete' m. */
  readonly R: Tensor;
}

/** Returns Q R = a for matrices [..., m, n]. There is no gradient for the mode 'r', nor for 'complete' if m > n. */
export function qr(a: Tensor, options: QrOptions = {}): QAndR {
  requireMatrices('linalg.qr', a);
  checkOptions('linalg.qr', options, qrOptions);
  const { mode = 'reduced' } = options;
  const [m, n] = a.shape.slice(-2) as [number, number];
  const inner = mode === 'complete' ? m : Math.min(m, n);
  const [Q, R] = batched(
    'linalg.qr',
    [a],
    [
      [m, inner],
      [inner, n],
    ],
    ([x]) => {
      const all = qrOf(x!);
      const q = all.q.firstCols(inner);
      const r = Matrix.from(inner, n, (i, j) => all.r.at(i, j));
      return {
        outs: [q, r],
        backward: ([gradQ, gradR]) => {
          if (mode === 'r') throw noGradient('linalg.qr', "the mode 'r', which has no Q; use 'reduced'");
          if (mode === 'complete' && m > n)
            throw noGradient(
              'linalg.qr',
              "the mode 'complete' of matrices with more rows than columns; use 'reduced'",
            );
          return [qrGradient(q, r, gradQ!, gradR!)];
        },
      };
    },
  );
  if (mode !== 'r') return { Q: Q!, R: R! };
  return { Q: Q!.detach().reshape([-1]).narrow(0, 0, 0), R: R! };
}

function qrGradient(q: Matrix, r: Matrix, gradQ: Matrix, gradR: Matrix): Matrix {
  const k = r.rows;
  const left = r.firstCols(k);
  // The columns of R behind its square part are Qᵀ times those of the matrix, so they depend on Q.
  const behind = (x: Matrix): Matrix => Matrix.from(x.rows, r.cols - k, (i, j) => x.at(i, k + j));
  const gradBehind = behind(gradR);
  const whole = gradQ.plus(q.times(behind(r)).times(gradBehind.t));
  const inner = left.times(gradR.firstCols(k).t).plus(whole.t.times(q), -1);
  const symmetric = inner.map((value, i, j) => (i >= j ? value : inner.at(j, i)));
  const ofLeft = rightSolved(whole.plus(q.times(symmetric)), left);
  const ofBehind = q.times(gradBehind);
  return Matrix.from(q.rows, r.cols, (i, j) => (j < k ? ofLeft.at(i, j) : ofBehind.at(i, j - k)));
}

/** Returns x R⁻ᵀ for an upper triangular R. */
const rightSolved = (x: Matrix, r: Matrix): Matrix => substituted(r, x.t, { upper: true, unit: false }).t;

/** Options of eigh() and eigvalsh(). */
export interface EighOptions {
  /** Which triangle is read. Default 'L', the lower one. */
  readonly uplo?: 'L' | 'U';
}
const eighOptions = optionChecks<EighOptions>({ uplo: oneOf('L', 'U') });

/** Eigenvalues and eigenvectors. */
export interface Eigen {
  /** [..., n], rising. */
  readonly eigenvalues: Tensor;
  /** [..., n, n]; the columns are the vectors. The first element that is at least half the largest is positive. */
  readonly eigenvectors: Tensor;
}

function eigen(op: string, a: Tensor, options: EighOptions): [Tensor, Tensor] {
  requireMatrices(op, a, true);
  checkOptions(op, options, eighOptions);
  const size = a.shape.at(-1)!;
  const isLower = (options.uplo ?? 'L') === 'L';
  return batched(op, [a], [[size], [size, size]], ([x], index) => {
    if (!x!.isFinite) throw notFinite(op, a, index);
    const symmetric = x!.map((value, i, j) => ((isLower ? i >= j : i <= j) ? value : x!.at(j, i)));
    const { values, vectors } = eighOf(symmetric);
    return {
      outs: [new Matrix(1, size, values), vectors],
      backward: ([gradValues, gradVectors]) => {
        const turned = vectors.t.times(gradVectors!);
        const inner = turned.map((value, i, j) =>
          i === j ? gradValues!.data[i]! : value === 0 ? 0 : value / (values[j]! - values[i]!),
        );
        const grad = vectors.times(inner).times(vectors.t);
        return [grad.plus(grad.t).map((value) => value / 2)];
      },
    };
  }) as [Tensor, Tensor];
}

/**
 * Returns eigenvalues and eigenvectors of symmetric matrices [..., n, n], of which it reads one triangle. The gradient
 * of vectors needs distinct eigenvalues. Throws ERR_TENSOR_LINALG for NaN and infinities.
 */
export function eigh(a: Tensor, options: EighOptions = {}): Eigen {
  const [eigenvalues, eigenvectors] = eigen('linalg.eigh', a, options);
  return { eigenvalues, eigenvectors };
}

/** Returns the eigenvalues of symmetric matrices [..., n, n], rising, of which it reads one triangle. */
export function eigvalsh(a: Tensor, options: EighOptions = {}): Tensor {
  return eigen('linalg.eigvalsh', a, options)[0];
}

/** Options of svd(). */
export interface SvdOptions {
  /** Whether U and Vh are square, [..., m, m] and [..., n, n]; otherwise they have k columns and rows. Default true. */
  readonly fullMatrices?: boolean;
}
const svdOptions = optionChecks<SvdOptions>({ fullMatrices: flag });

/** Singular values and vectors: U diag(S) Vh. */
export interface SingularValues {
  /** Left singular vectors in the columns: [..., m, k], or with fullMatrices [..., m, m]. */
  readonly U: Tensor;
  /** Singular values in descending order: [..., k]; k is the smaller size. */
  readonly S: Tensor;
  /** Right singular vectors in the rows: [..., k, n], or with fullMatrices [..., n, n]. */
  readonly Vh: Tensor;
}

/** Returns the columns of `u` and more, which make it square. */
function squared(u: Matrix): Matrix {
  const units = Array.from({ length: u.cols }, (_, j) =>
    Float64Array.from({ length: u.rows }, (_, i) => u.at(i, j)),
  );
  completeBasis(units, u.rows, u.rows);
  return Matrix.from(u.rows, u.rows, (i, j) => units[j]![i]!);
}

function singularValues(op: string, a: Tensor, isFull: boolean): [Tensor, Tensor, Tensor] {
  requireMatrices(op, a);
  const [m, n] = a.shape.slice(-2) as [number, number];
  const k = Math.min(m, n);
  const shapes = isFull ? [[m, m], [k], [n, n]] : [[m, k], [k], [k, n]];
  return batched(op, [a], shapes, ([x], index) => {
    if (!x!.isFinite) throw notFinite(op, a, index);
    const { u, s, vh } = svdOf(x!);
    return {
      outs: [isFull ? squared(u) : u, new Matrix(1, k, s), isFull ? squared(vh.t).t : vh],
      backward: ([gradU, gradS, gradVh]) => {
        // As in PyTorch, the vectors behind the first k count as constants.
        const parts = isFull ? [gradU!.firstCols(k), gradVh!.t.firstCols(k).t] : [gradU!, gradVh!];
        return [svdGradient(u, s, vh, parts[0]!, gradS!.data, parts[1]!.t)];
      },
    };
  }) as [Tensor, Tensor, Tensor];
}

/** `gradV` is the gradient of V, the transpose of Vh. */
function svdGradient(
  u: Matrix,
  s: Float64Array,
  vh: Matrix,
  gradU: Matrix,
  gradS: Float64Array,
  gradV: Matrix,
): Matrix {
  const [left, right] = [u.t.times(gradU), vh.times(gradV)];
  const skew = (x: Matrix, i: number, j: number): number => x.at(i, j) - x.at(j, i);
  const inner = left.map((_, i, j) => {
    if (i === j) return gradS[i]!;
    const sum = skew(left, i, j) * s[j]! + s[i]! * skew(right, i, j);
    return sum === 0 ? 0 : sum / (s[j]! ** 2 - s[i]! ** 2);
  });
  let out = u.times(inner).times(vh);
  // The part of the gradients that is orthogonal to the vectors. It is zero if the vectors span the whole space.
  const scaled = (x: Matrix): Matrix => x.map((value, _, j) => (value === 0 ? 0 : value / s[j]!));
  if (u.rows > s.length) out = out.plus(scaled(gradU.plus(u.times(left), -1)).times(vh));
  if (vh.cols > s.length) out = out.plus(u.times(scaled(gradV.plus(vh.t.times(right), -1)).t));
  return out;
}

/**
 * Returns the singular value decomposition of matrices [..., m, n]. In each column of U the first element that is at
 * least half the largest is positive. Gradients of U and Vh need distinct singular values, and do not pass through the
 * vectors that only complete these to square matrices. Throws ERR_TENSOR_LINALG for NaN and infinities.
 */
export function svd(a: Tensor, options: SvdOptions = {}): SingularValues {
  checkOptions('linalg.svd', options, svdOptions);
  const [U, S, Vh] = singularValues('linalg.svd', a, options.fullMatrices ?? true);
  return { U, S, Vh };
}

/** Returns the singular values of matrices [..., m, n]: [..., k], falling, where k is the smaller size. */
export function svdvals(a: Tensor): Tensor {
  return singularValues('linalg.svdvals', a, false)[1];
}
