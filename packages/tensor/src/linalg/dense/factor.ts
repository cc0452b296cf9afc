// Factorisations that need no iteration: Cholesky, LU with row exchanges, QR by reflections; and triangular systems.
import { Matrix } from './matrix.ts';

/**
 * Returns the lower factor L of a = L Lᵀ, of which it reads the lower triangle. If `a` is not positive definite,
 * returns the order of the first leading minor that is not positive.
 */
export function choleskyOf(a: Matrix): Matrix | number {
  const n = a.rows;
  const out = new Matrix(n, n);
  for (let j = 0; j < n; j++) {
    for (let i = j; i < n; i++) {
      let sum = a.at(i, j);
      for (let k = 0; k < j; k++) sum -= out.at(i, k) * out.at(j, k);
      if (i > j) out.set(i, j, sum / out.at(j, j));
      else if (sum > 0) out.set(j, j, Math.sqrt(sum));
      else return j + 1;
    }
  }
  return out;
}

/** A factorisation by row exchanges, a lower matrix with ones on its diagonal, and an upper one. */
export interface Lu {
  /** Both factors in one matrix. */
  readonly factors: Matrix;
  /** The index of the original row at each position. */
  readonly order: readonly number[];
  /** The sign of the exchanges. */
  readonly sign: number;
  /** The position from 1 of the first pivot that is 0; 0 if there is none. */
  readonly zeroAt: number;
}

export function luOf(a: Matrix): Lu {
  const n = a.rows;
  const factors = a.clone();
  const order = Array.from({ length: n }, (_, i) => i);
  let sign = 1;
  let zeroAt = 0;
  const { data } = factors;
  for (let k = 0; k < n; k++) {
    let best = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(factors.at(i, k)) > Math.abs(factors.at(best, k))) best = i;
    const pivot = factors.at(best, k);
    if (pivot === 0) {
      zeroAt ||= k + 1;
      continue;
    }
    if (best !== k) {
      sign = -sign;
      [order[k], order[best]] = [order[best]!, order[k]!];
      const row = data.slice(k * n, (k + 1) * n);
      data.copyWithin(k * n, best * n, (best + 1) * n);
      data.set(row, best * n);
    }
    for (let i = k + 1; i < n; i++) {
      const factor = data[i * n + k]! / pivot;
      data[i * n + k] = factor;
      if (factor !== 0) for (let j = k + 1; j < n; j++) data[i * n + j]! -= factor * data[k * n + j]!;
    }
  }
  return { factors, order, sign, zeroAt };
}

/** Returns the solution X of a X = b from the factorisation of a. */
export function luSolve({ factors, order }: Lu, b: Matrix): Matrix {
  const permuted = Matrix.from(b.rows, b.cols, (i, j) => b.at(order[i]!, j));
  const below = substituted(factors, permuted, { upper: false, unit: true });
  return substituted(factors, below, { upper: true, unit: false });
}

/** Which triangle is read, and whether its diagonal counts as ones. */
export interface Triangle {
  readonly upper: boolean;
  readonly unit: boolean;
}

/** Returns the solution X of a X = b, reading one triangle of `a`. Divides by its diagonal without a check. */
export function substituted(a: Matrix, b: Matrix, { upper, unit }: Triangle): Matrix {
  const n = a.rows;
  const width = b.cols;
  const out = b.clone();
  const { data } = out;
  for (let step = 0; step < n; step++) {
    const i = upper ? n - 1 - step : step;
    for (let k = upper ? i + 1 : 0; k < (upper ? n : i); k++) {
      const factor = a.at(i, k);
      if (factor !== 0) for (let j = 0; j < width; j++) data[i * width + j]! -= factor * data[k * width + j]!;
    }
    if (!unit) for (let j = 0; j < width; j++) data[i * width + j]! /= a.at(i, i);
  }
  return out;
}

/**
 * Returns an orthogonal Q of m × m and R of m × n whose product is `a`. Each reflection makes the diagonal element of R
 * opposite in sign to the element that it replaces, as LAPACK does.
 */
export function qrOf(a: Matrix): { readonly q: Matrix; readonly r: Matrix } {
  const [m, n] = [a.rows, a.cols];
  const r = a.clone();
  const q = Matrix.identity(m);
  for (let k = 0; k < Math.min(m, n); k++) {
    let rest = 0;
    for (let i = k + 1; i < m; i++) rest = Math.hypot(rest, r.at(i, k));
    if (rest === 0) continue;
    const first = r.at(k, k);
    const diagonal = first >= 0 ? -Math.hypot(first, rest) : Math.hypot(first, rest);
    const v = Array.from({ length: m }, (_, i) =>
      i < k ? 0 : i === k ? 1 : r.at(i, k) / (first - diagonal),
    );
    const tau = (diagonal - first) / diagonal;
    reflect(r, v, tau, k);
    for (let i = k + 1; i < m; i++) r.set(i, k, 0);
    reflectRight(q, v, tau, k);
  }
  return { q, r };
}

/** Multiplies `a` by 1 − tau v vᵀ from the left. */
function reflect(a: Matrix, v: readonly number[], tau: number, from: number): void {
  for (let j = 0; j < a.cols; j++) {
    let sum = 0;
    for (let i = from; i < a.rows; i++) sum += v[i]! * a.at(i, j);
    for (let i = from; i < a.rows; i++) a.set(i, j, a.at(i, j) - tau * sum * v[i]!);
  }
}

/** Multiplies `a` by 1 − tau v vᵀ from the right. */
function reflectRight(a: Matrix, v: readonly number[], tau: number, from: number): void {
  for (let i = 0; i < a.rows; i++) {
    let sum = 0;
    for (let j = from; j < a.cols; j++) sum += v[j]! * a.at(i, j);
    for (let j = from; j < a.cols; j++) a.set(i, j, a.at(i, j) - tau * sum * v[j]!);
  }
}
