// Matrix functions of PowerSGD. Matrices are row-major and small enough in one dimension for plain loops.
// Sums are computed in float64 in a fixed order, so that ranks with equal bits get equal bits.

/** Computes out (n × r) = a (n × m) · b (m × r). */
export function multiply(a: Float32Array, b: Float32Array, out: Float32Array, n: number, m: number): void {
  const r = out.length / n;
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < r; k++) {
      let sum = 0;
      for (let j = 0; j < m; j++) sum += a[i * m + j]! * b[j * r + k]!;
      out[i * r + k] = sum;
    }
  }
}

/** Computes out (m × r) = aᵀ · b for a (n × m) and b (n × r). */
export function multiplyTransposed(
  a: Float32Array,
  b: Float32Array,
  out: Float32Array,
  n: number,
  m: number,
): void {
  const r = out.length / m;
  for (let j = 0; j < m; j++) {
    for (let k = 0; k < r; k++) {
      let sum = 0;
      for (let i = 0; i < n; i++) sum += a[i * m + j]! * b[i * r + k]!;
      out[j * r + k] = sum;
    }
  }
}

/** Computes out (n × m) = p (n × r) · qᵀ for q (m × r). */
export function outer(p: Float32Array, q: Float32Array, out: Float32Array, n: number, m: number): void {
  const r = p.length / n;
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < m; j++) {
      let sum = 0;
      for (let k = 0; k < r; k++) sum += p[i * r + k]! * q[j * r + k]!;
      out[i * m + j] = sum;
    }
  }
}

// If less than this fraction of a column remains when earlier columns are subtracted, it is rounding noise.
const noise = 1e-6;

/**
 * Makes the columns of p (n × r, r ≤ n) orthonormal in place: Gram–Schmidt, twice for each column. A column
 * that depends on earlier ones is replaced by a unit vector, so that it can take part in the next step.
 */
export function orthonormalize(p: Float32Array, n: number): void {
  const r = p.length / n;
  for (let k = 0; k < r; k++) {
    for (let unit = 0; !normalizeColumn(p, n, k) && unit < n; unit++) {
      for (let i = 0; i < n; i++) p[i * r + k] = i === unit ? 1 : 0;
    }
  }
}

/**
 * Subtracts from column k its components along the columns before it and normalizes it. Returns false if
 * nothing is left.
 */
function normalizeColumn(p: Float32Array, n: number, k: number): boolean {
  const r = p.length / n;
  const dot = (a: number, b: number) => {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += p[i * r + a]! * p[i * r + b]!;
    return sum;
  };
  for (let pass = 0; pass < 2; pass++) {
    const before = Math.sqrt(dot(k, k));
    for (let l = 0; l < k; l++) {
      const part = dot(k, l);
      for (let i = 0; i < n; i++) p[i * r + k]! -= part * p[i * r + l]!;
    }
    const norm = Math.sqrt(dot(k, k));
    if (!(norm > noise * before)) return false;
    for (let i = 0; i < n; i++) p[i * r + k]! /= norm;
  }
  return true;
}
