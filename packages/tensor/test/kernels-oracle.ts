// What the contract suite compares kernels with: inputs, tolerances, and each operation once more in float64.
import { expect } from 'vitest';
import type { BinaryOp, DType, HostArray, SgdOptions, UnaryOp } from '../src/kernels.ts';

export const sizes = [0, 1, 2, 3, 7, 8, 9, 15, 17, 31, 33, 65, 200, 1000, 4099];
export const dtypes: DType[] = ['float32', 'int32', 'int64'];
export const special = [NaN, Infinity, -Infinity, 0, -0, 1, -1, 100, -100, 1e-38, 3e38];

/** Numbers in [-2, 2) with no pattern that a wrong stride could hide behind. */
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
  if (dtype === 'float32') return Float32Array.from(values);
  if (dtype === 'int32') return Int32Array.from(values);
  return BigInt64Array.from(values, (value) => BigInt(value));
}

export const list = (host: HostArray): (number | bigint)[] => Array.from<number | bigint>(host as never);
export const numbers = (host: HostArray): number[] => list(host).map(Number);

/** Within `tolerance` relative to max(1, |want|); NaN and infinities must be the same. */
export function expectClose(got: HostArray | number[], want: readonly number[], tolerance = 2e-6): void {
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

export const unaries: Record<UnaryOp, (x: number) => number> = {
  neg: (x) => -x,
  exp: (x) => Math.exp(x),
  log: (x) => Math.log(x),
  sqrt: (x) => Math.sqrt(x),
  square: (x) => x ** 2,
  abs: (x) => Math.abs(x),
  relu: (x) => Math.max(0, x),
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
  tanh: (x) => Math.tanh(x),
};
export const binaries: Record<BinaryOp, (a: number, b: number) => number> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  max: (a, b) => Math.max(a, b),
  min: (a, b) => Math.min(a, b),
  eq: (a, b) => Number(a === b),
  lt: (a, b) => Number(a < b),
  reluGrad: (grad, out) => (out <= 0 ? 0 : grad),
  sigmoidGrad: (grad, out) => grad * out * (1 - out),
  tanhGrad: (grad, out) => grad * (1 - out ** 2),
};
export const integerBinaries: BinaryOp[] = ['add', 'sub', 'mul', 'max', 'min', 'eq', 'lt'];

export const flags = [false, true].flatMap((transA) =>
  [false, true].flatMap((transB) => [false, true].map((accumulate) => [transA, transB, accumulate] as const)),
);

export function gather(
  host: HostArray,
  shape: readonly number[],
  strides: readonly number[],
  offset: number,
): (number | bigint)[] {
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

/** The values that each element of a reduction's output is made of. */
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

/** values is [rows, cols]; the result is [cols, rows]. */
export const transposed = (values: readonly number[], rows: number, cols: number): number[] =>
  Array.from({ length: rows * cols }, (_, i) => values[(i % rows) * cols + Math.floor(i / rows)]!);

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

/** One parameter through the formula in PyTorch's documentation of SGD. */
export function sgd64(
  cell: { value: number; speed: number },
  grad: number,
  options: Omit<SgdOptions, 'first'>,
  isFirst: boolean,
): void {
  let g = grad + options.weightDecay * cell.value;
  if (options.momentum !== 0) {
    cell.speed = isFirst ? g : options.momentum * cell.speed + (1 - options.dampening) * g;
    g = options.nesterov ? g + options.momentum * cell.speed : cell.speed;
  }
  cell.value -= options.lr * g;
}
