// The kernels in plain TypeScript: slow, complete, and the definition of what is right. Float arithmetic runs in
// float64 and is rounded once, when it is stored.
import type {
  BinaryOp,
  DType,
  HostArray,
  Kernels,
  Memory,
  ReduceOp,
  SgdOptions,
  UnaryOp,
} from '../kernels.ts';

/** A typed array whose element type is not known to the compiler. */
interface Cells {
  [index: number]: number | bigint;
  readonly length: number;
}
type Floats = Float32Array;

const unaries: Record<UnaryOp, (x: number) => number> = {
  neg: (x) => -x,
  exp: Math.exp,
  log: Math.log,
  sqrt: Math.sqrt,
  square: (x) => x * x,
  abs: Math.abs,
  relu: (x) => Math.max(x, 0),
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
  tanh: Math.tanh,
};

const floatBinaries: Record<BinaryOp, (a: number, b: number) => number> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  max: Math.max,
  min: Math.min,
  eq: (a, b) => (a === b ? 1 : 0),
  lt: (a, b) => (a < b ? 1 : 0),
  reluGrad: (grad, out) => (out <= 0 ? 0 : grad),
  sigmoidGrad: (grad, out) => grad * out * (1 - out),
  tanhGrad: (grad, out) => grad * (1 - out * out),
};

// A product of two int32 does not fit into a float64; everything else does, and storing wraps.
const int32Binaries = { ...floatBinaries, mul: Math.imul };

// Math.max takes no bigint.
function larger(a: bigint, b: bigint): bigint {
  if (a > b) return a;
  return b;
}

const int64Binaries: Partial<Record<BinaryOp, (a: bigint, b: bigint) => bigint>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  max: larger,
  min: (a, b) => (larger(a, b) === a ? b : a),
  eq: (a, b) => (a === b ? 1n : 0n),
  lt: (a, b) => (a < b ? 1n : 0n),
};

function binaryOn(op: BinaryOp, dtype: DType): (a: never, b: never) => number | bigint {
  if (dtype === 'float32') return floatBinaries[op];
  if (dtype === 'int32') return int32Binaries[op];
  return int64Binaries[op]!;
}

let lastHandle = 0;
const wrap = (dtype: DType, host: HostArray): Memory => ({
  dtype,
  count: host.length,
  handle: ++lastHandle,
  host,
});

const dtypeOf = (array: HostArray): DType =>
  array instanceof Float32Array ? 'float32' : array instanceof Int32Array ? 'int32' : 'int64';

function alloc(dtype: DType, count: number): Memory {
  if (dtype === 'float32') return wrap(dtype, new Float32Array(count));
  return wrap(dtype, dtype === 'int32' ? new Int32Array(count) : new BigInt64Array(count));
}

/** Where each element of a dense [shape] lies in strided memory. */
function offsets(shape: readonly number[], strides: readonly number[], offset: number): number[] {
  let all = [offset];
  for (const [dim, size] of shape.entries()) {
    const next: number[] = [];
    for (const start of all) for (let i = 0; i < size; i++) next.push(start + i * strides[dim]!);
    all = next;
  }
  return all;
}

const toNumber = (value: number | bigint): number => Number(value);
const toBigInt = (value: number | bigint): bigint =>
  typeof value === 'bigint' ? value : BigInt(Math.trunc(value));

function fill(out: Memory, value: number): void {
  (out.host as Cells & { fill: (value: number | bigint) => void }).fill(
    out.dtype === 'int64' ? toBigInt(value) : value,
  );
}

function copy(out: Memory, a: Memory): void {
  const convert = out.dtype === 'int64' ? toBigInt : toNumber;
  const to: Cells = out.host;
  const from: Cells = a.host;
  for (let i = 0; i < out.count; i++) to[i] = convert(from[i]!);
}

function strided(
  out: Memory,
  a: Memory,
  shape: readonly number[],
  strides: readonly number[],
  offset: number,
): void {
  const to: Cells = out.host;
  const from: Cells = a.host;
  for (const [i, at] of offsets(shape, strides, offset).entries()) to[i] = from[at]!;
}

function unary(op: UnaryOp, out: Memory, a: Memory): void {
  const apply = unaries[op];
  const to = out.host as Floats;
  const from = a.host as Floats;
  for (let i = 0; i < out.count; i++) to[i] = apply(from[i]!);
}

function binary(
  op: BinaryOp,
  out: Memory,
  a: Memory,
  b: Memory,
  shape: readonly number[],
  aStrides: readonly number[],
  bStrides: readonly number[],
): void {
  const apply = binaryOn(op, a.dtype);
  const to: Cells = out.host;
  const left: Cells = a.host;
  const right: Cells = b.host;
  const atB = offsets(shape, bStrides, 0);
  for (const [i, at] of offsets(shape, aStrides, 0).entries()) {
    to[i] = apply(left[at] as never, right[atB[i]!] as never);
  }
}

function affine(out: Memory, a: Memory, scale: number, shift: number): void {
  const to = out.host as Floats;
  const from = a.host as Floats;
  for (let i = 0; i < out.count; i++) to[i] = from[i]! * scale + shift;
}

function axpy(out: Memory, a: Memory, scale: number): void {
  const to = out.host as Floats;
  const from = a.host as Floats;
  for (let i = 0; i < out.count; i++) to[i]! += from[i]! * scale;
}

function reduce(op: ReduceOp, out: Memory, a: Memory, outer: number, size: number, inner: number): void {
  const from: Cells = a.host;
  const to: Cells = out.host;
  const apply = binaryOn(op === 'sum' ? 'add' : 'max', a.dtype);
  const isWide = a.dtype === 'int64';
  const empty = op === 'max' ? -Infinity : isWide ? 0n : 0;
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      let result: number | bigint = op === 'max' && size > 0 ? from[o * size * inner + i]! : empty;
      for (let s = op === 'max' ? 1 : 0; s < size; s++) {
        result = apply(result as never, from[(o * size + s) * inner + i] as never);
      }
      to[o * inner + i] = result;
    }
  }
}

function argmax(out: Memory, a: Memory, outer: number, size: number, inner: number): void {
  const from: Cells = a.host;
  const to = out.host as Int32Array;
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      const at = (s: number): number | bigint => from[(o * size + s) * inner + i]!;
      let best = 0;
      for (let s = 1; s < size && !Number.isNaN(at(best)); s++) {
        if (at(s) > at(best) || Number.isNaN(at(s))) best = s;
      }
      to[o * inner + i] = best;
    }
  }
}

function matmul(
  out: Memory,
  a: Memory,
  b: Memory,
  m: number,
  n: number,
  k: number,
  transA: boolean,
  transB: boolean,
  accumulate: boolean,
): void {
  const to = out.host as Floats;
  const left = a.host as Floats;
  const right = b.host as Floats;
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let sum = accumulate ? to[i * n + j]! : 0;
      for (let p = 0; p < k; p++) {
        sum += left[transA ? p * m + i : i * k + p]! * right[transB ? j * k + p : p * n + j]!;
      }
      to[i * n + j] = sum;
    }
  }
}

function logSoftmax(out: Memory, a: Memory, rows: number, cols: number): void {
  for (let r = 0; r < rows; r++) {
    const from = (a.host as Floats).subarray(r * cols, (r + 1) * cols);
    let max = -Infinity;
    for (const x of from) max = Math.max(max, x);
    let sum = 0;
    for (const x of from) sum += Math.exp(x - max);
    for (let c = 0; c < cols; c++) out.host[r * cols + c] = from[c]! - max - Math.log(sum);
  }
}

function logSoftmaxGrad(gradIn: Memory, gradOut: Memory, out: Memory, rows: number, cols: number): void {
  const grad = gradOut.host as Floats;
  const logProbs = out.host as Floats;
  for (let r = 0; r < rows; r++) {
    let sum = 0;
    for (let i = r * cols; i < (r + 1) * cols; i++) sum += grad[i]!;
    for (let i = r * cols; i < (r + 1) * cols; i++) gradIn.host[i] = grad[i]! - Math.exp(logProbs[i]!) * sum;
  }
}

function nll(losses: Memory, logProbs: Memory, labels: Memory, rows: number, cols: number): void {
  const from = logProbs.host as Floats;
  for (let r = 0; r < rows; r++) losses.host[r] = -from[r * cols + Number(labels.host[r])]!;
}

function nllGrad(gradIn: Memory, gradLosses: Memory, labels: Memory, rows: number, cols: number): void {
  const to = gradIn.host as Floats;
  const from = gradLosses.host as Floats;
  to.fill(0);
  for (let r = 0; r < rows; r++) to[r * cols + Number(labels.host[r])] = -from[r]!;
}

function sgd(param: Memory, grad: Memory, velocity: Memory | null, options: SgdOptions): void {
  const { lr, momentum, dampening, weightDecay, nesterov, first } = options;
  const values = param.host as Floats;
  const grads = grad.host as Floats;
  const speeds = velocity?.host as Floats | undefined;
  for (let i = 0; i < param.count; i++) {
    let step = grads[i]! + weightDecay * values[i]!;
    if (speeds) {
      speeds[i] = first ? step : momentum * speeds[i]! + (1 - dampening) * step;
      step = nesterov ? step + momentum * speeds[i]! : speeds[i]!;
    }
    values[i] = values[i]! - lr * step;
  }
}

export const referenceKernels: Kernels = {
  name: 'reference',
  alloc,
  adopt: (array) => wrap(dtypeOf(array), array),
  // The collector takes the array.
  free: () => {},
  fill,
  copy,
  strided,
  unary,
  binary,
  affine,
  axpy,
  reduce,
  argmax,
  matmul,
  logSoftmax,
  logSoftmaxGrad,
  nll,
  nllGrad,
  sgd,
};
