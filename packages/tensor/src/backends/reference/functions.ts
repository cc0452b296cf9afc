// The error function, its relatives, and the elementary functions that JavaScript has under other names.

const { abs, exp, sqrt } = Math;

/**
 * Returns the error function of x: by its series, and from |x| = 2.5 on by the continued fraction of its complement.
 */
export function erf(x: number): number {
  const size = abs(x);
  if (Number.isNaN(x)) return NaN;
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let term = x;
    let sum = x;
    for (let n = 1; abs(term) > 1e-18 * abs(sum); n++) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / sqrt(Math.PI)) * sum;
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (size + fraction);
  return Math.sign(x) * (1 - exp(-x * x) / sqrt(Math.PI) / (size + fraction));
}

/** Returns 1 − erf x, also where that is too small for erf to show. */
function erfc(x: number): number {
  if (!(x >= 2.5)) return 1 - erf(x);
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (x + fraction);
  return exp(-x * x) / sqrt(Math.PI) / (x + fraction);
}

/** Returns the number whose error function is x: an estimate by S. Winitzki, then steps of Halley's method. */
function erfinv(x: number): number {
  const size = abs(x);
  if (!(size < 1)) return size === 1 ? x * Infinity : NaN;
  const log = Math.log1p(-x * x);
  const middle = 2 / (Math.PI * 0.147) + log / 2;
  let y = sqrt(-log / 0.147 / (sqrt(middle * middle - log / 0.147) + middle));
  for (let step = 0; step < 3; step++) {
    const error = size < 0.5 ? erf(y) - size : 1 - size - erfc(y);
    const change = (error * sqrt(Math.PI) * exp(y * y)) / 2;
    y -= change / (1 + y * change);
  }
  return x < 0 ? -y : x === 0 ? x : y;
}

export const elementary = {
  log1p: Math.log1p,
  expm1: Math.expm1,
  log2: Math.log2,
  log10: Math.log10,
  exp2: (x: number) => 2 ** x,
  tan: Math.tan,
  asin: Math.asin,
  acos: Math.acos,
  atan: Math.atan,
  sinh: Math.sinh,
  cosh: Math.cosh,
  asinh: Math.asinh,
  acosh: Math.acosh,
  atanh: Math.atanh,
  erfc,
  erfinv,
} as const;
