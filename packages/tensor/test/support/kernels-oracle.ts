// Inputs and tolerances of the contract suite, and plain implementations of operations in float64.
import { expect } from 'vitest';
import type { MapOp } from '../../src/backends/declarations/names.ts';
import type { Memory } from '../../src/backends/operands.ts';
import { type DType, dtypeInfo, type HostArray } from '../../src/core/dtype.ts';
import { reader, writer } from '../../src/core/element.ts';

export { dtypes } from '../../src/core/dtype.ts';
export const floatTypes: DType[] = ['float32', 'float64', 'float16', 'bfloat16'];
/** Counts of elements around the widths of vectors and blocks. */
export const sizes = [0, 1, 2, 3, 7, 8, 9, 15, 17, 31, 33, 65, 200, 1000, 4099];
/** Elements at the edges of float32. */
export const special = [NaN, Infinity, -Infinity, 0, -0, 1, -1, 100, -100, 1e-38, 3e38];

/** The rounding error that a result may have, relative to the largest of 1 and its size. */
export const tolerances: Readonly<Record<DType, number>> = {
  ...{ float32: 3e-6, float64: 1e-12, float16: 1.1e-3, bfloat16: 8.5e-3 },
  ...{ int32: 0, int64: 0, uint8: 0, bool: 0 },
};

/** Returns numbers in [-2, 2) without a pattern that could hide a wrong stride. */
export function noise(count: number, seed = 1): number[] {
  let state = seed * 7919 + 12345;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.fround(state / 2 ** 30 - 2);
  });
}
export const integers = (count: number, seed = 1): number[] =>
  noise(count, seed).map((x) => Math.trunc(x * 50));

export function hostOf(dtype: DType, values: readonly number[]): HostArray {
  const host = new dtypeInfo[dtype].array(values.length);
  const put = writer({ dtype, host });
  for (const [i, value] of values.entries()) put(i, value);
  return host;
}

export const list = (host: HostArray): (number | bigint)[] => Array.from<number | bigint>(host as never);
/** Returns all elements as numbers. */
export function numbers(memory: Pick<Memory, 'dtype' | 'host'>): number[] {
  const read = reader(memory);
  return Array.from({ length: memory.host.length }, (_, i) => Number(read(i)));
}
/** Returns the values after they were stored in `dtype`. */
export const stored = (dtype: DType, values: readonly number[]): number[] =>
  numbers({ dtype, host: hostOf(dtype, values) });

/**
 * Expects numbers within `tolerance` relative to max(1, |want|). NaN and infinities must be the same. For every dtype,
 * it also accepts a number that is `want` rounded to float32.
 */
export function expectClose(
  got: ArrayLike<number | bigint>,
  want: readonly number[],
  tolerance = 3e-6,
): void {
  expect(got.length).toBe(want.length);
  for (const [i, expected] of want.entries()) {
    const actual = Number(got[i]);
    const rounded = Math.fround(expected);
    if (Object.is(actual, rounded) || actual === rounded) continue;
    const error = Math.abs(actual - expected) / Math.max(1, Math.abs(expected));
    if (!(error <= tolerance)) expect.fail(`element ${i}: expected ${expected}, got ${actual}`);
  }
}

export const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** Computes erf by Simpson's rule, which is slow but independent of the methods of the kernels. */
function erf64(x: number): number {
  if (Math.abs(x) > 7) return Math.sign(x);
  const end = Math.abs(x);
  const steps = 2000;
  let sum = 0;
  for (let i = 0; i <= steps; i++) {
    sum += (i === 0 || i === steps ? 1 : i % 2 === 1 ? 4 : 2) * Math.exp(-(((end * i) / steps) ** 2));
  }
  const value = Math.sign(x) * (2 / Math.sqrt(Math.PI)) * (end / steps / 3) * sum;
  return Number.isNaN(x) ? NaN : value;
}
/** Computes erfc from 2 on by its integral, so that its small values keep their digits. */
function erfc64(x: number): number {
  if (!(x > 2)) return 1 - erf64(x);
  if (x > 30) return 0;
  const steps = 4000;
  let sum = 0;
  for (let i = 0; i <= steps; i++) {
    const at = x + (8 * i) / steps;
    sum += (i === 0 || i === steps ? 1 : i % 2 === 1 ? 4 : 2) * Math.exp(-at * at);
  }
  return (2 / Math.sqrt(Math.PI)) * (8 / steps / 3) * sum;
}
/** Finds the number whose erf is x by bisection. */
function erfinv64(x: number): number {
  if (!(Math.abs(x) < 1)) return Math.abs(x) === 1 ? x * Infinity : NaN;
  let [low, high] = [-7, 7];
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (erf64(middle) < x) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}
const logistic = (x: number): number => 1 / (1 + Math.exp(-x));
const cdf = (x: number): number => 0.5 + 0.5 * erf64(x / Math.sqrt(2));
const derivative = (f: (x: number) => number, x: number): number => (f(x + 1e-5) - f(x - 1e-5)) / 2e-5;

export const unaries = {
  neg: (x) => -x,
  abs: (x) => Math.abs(x),
  sign: (x) => (x > 0 ? 1 : x < 0 ? -1 : 0),
  exp: (x) => Math.exp(x),
  log: (x) => Math.log(x),
  sqrt: (x) => Math.sqrt(x),
  rsqrt: (x) => 1 / Math.sqrt(x),
  square: (x) => x ** 2,
  sin: (x) => Math.sin(x),
  cos: (x) => Math.cos(x),
  tanh: (x) => Math.tanh(x),
  sigmoid: logistic,
  relu: (x) => Math.max(0, x),
  erf: erf64,
  gelu: (x) => x * cdf(x),
  geluTanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  silu: (x) => x * logistic(x),
  floor: (x) => Math.floor(x),
  ceil: (x) => Math.ceil(x),
  round: (x) => (Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x)),
  trunc: (x) => Math.trunc(x),
  logicalNot: (x) => Number(x === 0),
  ...{ log1p: Math.log1p, expm1: Math.expm1, log2: Math.log2, log10: Math.log10 },
  exp2: (x) => 2 ** x,
  ...{ tan: Math.tan, asin: Math.asin, acos: Math.acos, atan: Math.atan, sinh: Math.sinh, cosh: Math.cosh },
  ...{ asinh: Math.asinh, acosh: Math.acosh, atanh: Math.atanh },
  erfc: erfc64,
  erfinv: erfinv64,
} satisfies Partial<Record<MapOp, (x: number) => number>>;
export const binaries = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  pow: (a, b) => (a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : a ** b),
  max: (a, b) => Math.max(a, b),
  min: (a, b) => Math.min(a, b),
  eq: (a, b) => Number(a === b),
  ne: (a, b) => Number(a !== b),
  lt: (a, b) => Number(a < b),
  le: (a, b) => Number(a <= b),
  logicalAnd: (a, b) => Number(a !== 0 && b !== 0),
  logicalOr: (a, b) => Number(a !== 0 || b !== 0),
  logicalXor: (a, b) => Number((a !== 0) !== (b !== 0)),
  reluGrad: (grad, out) => (out <= 0 ? 0 : grad),
  sigmoidGrad: (grad, out) => grad * out * (1 - out),
  tanhGrad: (grad, out) => grad * (1 - out ** 2),
  atan2: (a, b) => Math.atan2(a, b),
  hypot: (a, b) => Math.hypot(a, b),
  copysign: (a, b) => (b < 0 || Object.is(b, -0) ? -Math.abs(a) : Math.abs(a)),
  // Numbers above 50 that differ are so far apart here that only the larger one counts.
  logAddExp: (a, b) => {
    if (Math.max(Math.abs(a), Math.abs(b)) < 50) return Math.log(Math.exp(a) + Math.exp(b));
    return a === b ? a + Math.LN2 : Math.max(a, b);
  },
  xlogy: (a, b) => (a === 0 && !Number.isNaN(b) ? 0 : a * Math.log(b)),
  remainder: (a, b) => {
    const rest = a % b;
    return rest === 0 || rest > 0 === b > 0 ? rest : rest + b;
  },
  fmod: (a, b) => a % b,
  floorDiv: (a, b) => (b === 0 ? a / b : (a - (a % b)) / b - Number((a % b) * b < 0)),
} satisfies Partial<Record<MapOp, (a: number, b: number) => number>>;
/** Operations of integers and bool alone, for integers of at most 31 bits. */
export const integerPairs = {
  bitAnd: (a, b) => a & b,
  bitOr: (a, b) => a | b,
  bitXor: (a, b) => a ^ b,
  shiftLeft: (a, b) => (b < 0 ? 0 : a * 2 ** b),
  shiftRight: (a, b) => (b < 0 ? (a < 0 ? -1 : 0) : Math.floor(a / 2 ** b)),
  gcd: (a, b) => {
    let [x, y] = [Math.abs(a), Math.abs(b)];
    while (y > 0) [x, y] = [y, x % y];
    return x;
  },
} satisfies Partial<Record<MapOp, (a: number, b: number) => number>>;
/** Gradients that read the forward input, by central differences. They are not right for NaN, ±∞ and signed zeros. */
export const slopes = {
  geluGrad: (grad, x) => grad * derivative(unaries.gelu, x),
  geluTanhGrad: (grad, x) => grad * derivative(unaries.geluTanh, x),
  siluGrad: (grad, x) => grad * derivative(unaries.silu, x),
} satisfies Partial<Record<MapOp, (a: number, b: number) => number>>;
export const ternaries = {
  where: (c, a, b) => (c !== 0 ? a : b),
  mulAdd: (a, b, c) => a * b + c,
  clamp: (x, low, high) => Math.min(Math.max(x, low), high),
  inRange: (x, low, high) => Number(x >= low && x <= high),
} satisfies Partial<Record<MapOp, (a: number, b: number, c: number) => number>>;

/** All combinations of transA, transB and accumulate. */
export const flags = [false, true].flatMap((transA) =>
  [false, true].flatMap((transB) => [false, true].map((accumulate) => [transA, transB, accumulate] as const)),
);

/** Returns the elements of a view with this shape, strides and offset, in row-major order. */
export function gather<T>(
  host: ArrayLike<T>,
  shape: readonly number[],
  strides: readonly number[],
  offset = 0,
): T[] {
  return Array.from({ length: product(shape) }, (_, flat) => {
    let rest = flat;
    let at = offset;
    for (let d = shape.length - 1; d >= 0; d--) {
      at += (rest % shape[d]!) * strides[d]!;
      rest = Math.floor(rest / shape[d]!);
    }
    return host[at]!;
  });
}

/** Returns for each element of a reduction's output the values that it reduces. */
export function columns(values: readonly number[], outer: number, size: number, inner: number): number[][] {
  return Array.from({ length: outer * inner }, (_, at) => {
    const [o, i] = [Math.floor(at / inner), at % inner];
    return Array.from({ length: size }, (_, s) => values[(o * size + s) * inner + i]!);
  });
}

export const rowsOf = (values: readonly number[], cols: number): number[][] =>
  Array.from({ length: values.length / cols }, (_, r) => values.slice(r * cols, (r + 1) * cols));

export function logSoftmax64(row: readonly number[]): number[] {
  const max = Math.max(...row);
  const log = Math.log(row.reduce((sum, x) => sum + Math.exp(x - max), 0));
  return row.map((x) => x - max - log);
}

/** Transposes `values` [rows, cols] to [cols, rows]. */
export const transposed = (values: readonly number[], rows: number, cols: number): number[] =>
  Array.from({ length: rows * cols }, (_, i) => values[(i % rows) * cols + Math.floor(i / rows)]!);

/** Returns left [m, k] times right [k, n]. */
export function product64(
  left: readonly number[],
  right: readonly number[],
  m: number,
  n: number,
  k: number,
): number[] {
  const out = new Array<number>(m * n).fill(0);
  for (let i = 0; i < m; i++) {
    for (let p = 0; p < k; p++) {
      for (let j = 0; j < n; j++) out[i * n + j]! += left[i * k + p]! * right[p * n + j]!;
    }
  }
  return out;
}
