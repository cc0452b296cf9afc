// Eigenvalues of symmetric matrices and singular values, by Jacobi's rotations: short, and as exact as float64 allows.
import { Matrix } from './matrix.ts';

const mostSweeps = 60;

/** Returns the rotation that makes the product of two directions 0, from half the difference of their squares. */
function rotation(theta: number): readonly [cos: number, sin: number] {
  const tan = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.hypot(theta, 1));
  const cos = 1 / Math.hypot(tan, 1);
  return [cos, tan * cos];
}

/** Rotates rows p and q of `a`. */
function rotate(a: Matrix, p: number, q: number, cos: number, sin: number): void {
  for (let k = 0; k < a.cols; k++) {
    const [x, y] = [a.at(p, k), a.at(q, k)];
    a.set(p, k, cos * x - sin * y);
    a.set(q, k, sin * x + cos * y);
  }
}

/**
 * Returns 1 or −1: the sign that makes the first element of a vector that is at least half as large as its largest
 * positive. Both signs of such a vector are correct, so this makes results equal on all machines.
 */
export function signOf(vector: ArrayLike<number>): number {
  let largest = 0;
  for (let i = 0; i < vector.length; i++) largest = Math.max(largest, Math.abs(vector[i]!));
  for (let i = 0; i < vector.length; i++)
    if (Math.abs(vector[i]!) >= largest / 2) return vector[i]! < 0 ? -1 : 1;
  return 1;
}

const row = (a: Matrix, i: number): Float64Array => a.data.subarray(i * a.cols, (i + 1) * a.cols);

/** Returns the eigenvalues of a symmetric matrix, rising, and its eigenvectors, which are the columns of `vectors`. */
export function eighOf(symmetric: Matrix): { readonly values: Float64Array; readonly vectors: Matrix } {
  const n = symmetric.rows;
  const a = symmetric.clone();
  const rows = Matrix.identity(n);
  for (let sweep = 0; sweep < mostSweeps; sweep++) {
    let isDone = true;
    for (let p = 0; p < n; p++) {
      for (let q = p + 1; q < n; q++) {
        const off = a.at(p, q);
        const [x, y] = [a.at(p, p), a.at(q, q)];
        if (Math.abs(off) <= 2 ** -56 * Math.max(Math.abs(x), Math.abs(y)) || off === 0) continue;
        isDone = false;
        const [cos, sin] = rotation((y - x) / (2 * off));
        rotate(a, p, q, cos, sin);
        for (let k = 0; k < n; k++) {
          const [u, v] = [a.at(k, p), a.at(k, q)];
          a.set(k, p, cos * u - sin * v);
          a.set(k, q, sin * u + cos * v);
        }
        a.set(p, q, 0);
        a.set(q, p, 0);
        rotate(rows, p, q, cos, sin);
      }
    }
    if (isDone) break;
  }
  const order = Array.from({ length: n }, (_, i) => i).sort((i, j) => a.at(i, i) - a.at(j, j));
  const signs = order.map((i) => signOf(row(rows, i)));
  return {
    values: Float64Array.from(order, (i) => a.at(i, i)),
    vectors: Matrix.from(n, n, (i, j) => signs[j]! * rows.at(order[j]!, i)),
  };
}

/** The reduced singular value decomposition a = u · diag(s) · vh of an m × n matrix, with k = min(m, n). */
export interface Svd {
  /** m × k: the left singular vectors are the columns. */
  readonly u: Matrix;
  /** The k singular values, in descending order. */
  readonly s: Float64Array;
  /** k × n: the right singular vectors are the rows. */
  readonly vh: Matrix;
}

/** Returns the singular values and vectors of a matrix of finite numbers. */
export function svdOf(a: Matrix): Svd {
  if (a.rows >= a.cols) return tallSvd(a);
  const { u, s, vh } = tallSvd(a.t);
  const left = vh.t;
  const signs = Array.from(s, (_, j) => signOf(row(vh, j)));
  return {
    u: left.map((x, _, j) => x * signs[j]!),
    s,
    vh: u.t.map((x, i) => x * signs[i]!),
  };
}

function tallSvd(a: Matrix): Svd {
  const [m, n] = [a.rows, a.cols];
  const scale = a.data.reduce((most, x) => Math.max(most, Math.abs(x)), 0) || 1;
  // Row j is column j of the original, turned until all are orthogonal.
  const cols = a.t.map((x) => x / scale);
  const turns = Matrix.identity(n);
  for (let sweep = 0; sweep < mostSweeps; sweep++) {
    let isDone = true;
    for (let p = 0; p < n; p++) {
      for (let q = p + 1; q < n; q++) {
        let [x, y, product] = [0, 0, 0];
        for (let k = 0; k < m; k++) {
          const [u, v] = [cols.at(p, k), cols.at(q, k)];
          x += u * u;
          y += v * v;
          product += u * v;
        }
        if (Math.abs(product) <= 1e-16 * Math.sqrt(x * y) || product === 0) continue;
        isDone = false;
        const [cos, sin] = rotation((y - x) / (2 * product));
        rotate(cols, p, q, cos, sin);
        rotate(turns, p, q, cos, sin);
      }
    }
    if (isDone) break;
  }
  const lengths = Array.from({ length: n }, (_, j) => Math.hypot(...row(cols, j)));
  const order = Array.from({ length: n }, (_, i) => i).sort((i, j) => lengths[j]! - lengths[i]!);
  const least = Math.max(...lengths, 0) * m * 2 ** -52;
  const known = order.filter((j) => lengths[j]! > least);
  const units = known.map((j) => row(cols, j).map((x) => x / lengths[j]!));
  completeBasis(units, n, m);
  const signs = units.map(signOf);
  return {
    u: Matrix.from(m, n, (i, j) => signs[j]! * units[j]![i]!),
    s: Float64Array.from(order, (j) => lengths[j]! * scale),
    vh: Matrix.from(n, n, (i, j) => signs[i]! * turns.at(order[i]!, j)),
  };
}

/** Adds unit vectors of `size` elements that are orthogonal to all others, until there are `count`. */
export function completeBasis(units: Float64Array[], count: number, size: number): void {
  for (let axis = 0; units.length < count && axis < size; axis++) {
    const vector = new Float64Array(size);
    vector[axis] = 1;
    // Twice, because the first pass leaves the rounding errors of a vector that is nearly in their span.
    for (let pass = 0; pass < 2; pass++) {
      for (const unit of units) {
        const product = unit.reduce((sum, x, i) => sum + x * vector[i]!, 0);
        for (let i = 0; i < size; i++) vector[i]! -= product * unit[i]!;
      }
    }
    const length = Math.hypot(...vector);
    // At least one of the axes that are left keeps this length.
    if (length > 0.5 / Math.sqrt(size)) units.push(vector.map((x) => x / length));
  }
}
