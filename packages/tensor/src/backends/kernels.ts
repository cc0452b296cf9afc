// The contract between tensors and the code that computes. `reference` is slow, complete TypeScript and defines
// what is right; `native` is C++. One suite (test/kernels-contract.ts) runs against both.
//
// A kernel sees memory, shapes and strides; it never allocates memory of tensors, never sees a Tensor and never throws
// for sizes: ops check shapes before they call. There are few kernels: broadcasting is a stride of 0, a slice is an
// offset, a transpose is an order of strides, and conversion between dtypes happens when an element is read or
// written. So an elementwise op is one expression in a kernel set, for all dtypes and all layouts.
//
// `out` may be an input of `map` and `copy` where both lie the same way; otherwise it overlaps no input.

import type { DType, HostArray } from '../core/dtype.ts';
import type { Device } from '../device/device.ts';
import type { DeviceControl } from '../device/device-control.ts';
import type { LayerKernels } from './layer-kernels.ts';
import type { LossKernels } from './loss-kernels.ts';
import type { Input, Memory, Stream, Strided } from './operands.ts';

/** Memory that another library lends. */
export interface Loan {
  readonly dtype: DType;
  /** Elements. */
  readonly count: number;
  readonly device: Device;
  /** Address of the first element, in the address space of the device. */
  readonly address: bigint;
  /** Kept until nothing works with the memory any more. */
  readonly owner: object;
  /** Called then; neither throws nor calls kernels. */
  readonly release: (() => void) | null;
  /**
   * The CUstream of the owner's work: what is started here comes after what it has been given by now, and
   * what it is given after `release` comes after all that was started here. Null: others see to the order.
   */
  readonly stream: bigint | null;
}

/**
 * Elementwise operations. Comparisons and logic give 1 or 0, and sign(NaN) is 0; NaN propagates through all
 * others. xGrad(g, v) is the gradient of x's input, with g that of its output and v the output (relu,
 * sigmoid, tanh) or the input (gelu, silu). geluTanh is gelu with the distribution function approximated by a
 * tanh. where(c, a, b), mulAdd(a, b, c) = a·b + c, clamp(a, low, high), inRange(a, low, high). Integers wrap
 * around; the operations of `floatMapOps` are not defined on them. The order is that of MapOp in
 * native/tensor/kernels.h.
 */
export const mapOps = [
  ...([
    'neg',
    'abs',
    'sign',
    'exp',
    'log',
    'sqrt',
    'rsqrt',
    'square',
    'sin',
    'cos',
    'tanh',
    'sigmoid',
  ] as const),
  ...(['relu', 'erf', 'gelu', 'geluTanh', 'silu', 'floor', 'ceil', 'round', 'trunc', 'logicalNot'] as const),
  ...(['add', 'sub', 'mul', 'div', 'pow', 'max', 'min', 'eq', 'ne', 'lt', 'le'] as const),
  ...(['logicalAnd', 'logicalOr', 'logicalXor'] as const),
  ...(['reluGrad', 'sigmoidGrad', 'tanhGrad', 'geluGrad', 'geluTanhGrad', 'siluGrad'] as const),
  ...(['where', 'mulAdd', 'clamp', 'inRange'] as const),
] as const;
export type MapOp = (typeof mapOps)[number];

export const floatMapOps: ReadonlySet<MapOp> = new Set([
  ...([
    'exp',
    'log',
    'sqrt',
    'rsqrt',
    'sin',
    'cos',
    'tanh',
    'sigmoid',
    'erf',
    'gelu',
    'geluTanh',
    'silu',
  ] as const),
  ...([
    'floor',
    'ceil',
    'round',
    'trunc',
    'div',
    'sigmoidGrad',
    'tanhGrad',
    'geluGrad',
    'geluTanhGrad',
  ] as const),
  'siluGrad',
]);

/** The order is that of ReduceOp in native/tensor/kernels.h. */
export const reduceOps = ['sum', 'mean', 'prod', 'max', 'min'] as const;
export type ReduceOp = (typeof reduceOps)[number];

/** Matrices are row-major; steps count elements from one stored row to the next. */
export interface MatmulSizes {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly aStep: number;
  readonly bStep: number;
  /** A is stored [k, m]. */
  readonly transA: boolean;
  /** B is stored [n, k]. */
  readonly transB: boolean;
  /** Adds to what is in `out`. */
  readonly accumulate: boolean;
}

/** A dense tensor as [outer, size, inner]; indices name positions along `size`, `count` of them. */
export interface LookupSizes {
  readonly outer: number;
  readonly count: number;
  readonly size: number;
  readonly inner: number;
  /** Whether the index is [outer, count, inner]; otherwise it is [count]. */
  readonly perElement: boolean;
}

/** The update of an optimiser; numbers and order of operations are those of torch.optim. */
export type OptimizerRule = SgdRule | AdamRule | RmspropRule | LionRule;

interface CommonRule {
  readonly lr: number;
  readonly weightDecay: number;
  /** Steps along the gradient instead of against it. */
  readonly maximize: boolean;
}
/** States: the velocity, null without momentum. The first step sets it to the gradient. */
export interface SgdRule extends CommonRule {
  readonly kind: 'sgd';
  readonly momentum: number;
  readonly dampening: number;
  readonly nesterov: boolean;
}
/** States: mean, mean square, and the maximum of mean squares, null without amsgrad. */
export interface AdamRule extends CommonRule {
  readonly kind: 'adam';
  readonly betas: readonly [number, number];
  readonly epsilon: number;
  /** Whether weight decay is decoupled from the gradient (AdamW). */
  readonly isDecoupled: boolean;
}
/** States: mean square; the velocity, null without momentum; the mean, null unless centered. */
export interface RmspropRule extends CommonRule {
  readonly kind: 'rmsprop';
  readonly alpha: number;
  readonly epsilon: number;
  readonly momentum: number;
  readonly centered: boolean;
}
/** States: the mean. */
export interface LionRule extends CommonRule {
  readonly kind: 'lion';
  readonly betas: readonly [number, number];
}

/** A parameter with what belongs to it, all dense, of one dtype (float32 or float64) and of `count` elements. */
export interface OptimizerTensor {
  readonly param: Strided;
  readonly grad: Strided;
  /** Up to three; null where the rule needs none. Zeros before the first step. */
  readonly states: readonly (Strided | null)[];
  readonly count: number;
  /** 1 in the parameter's first step. */
  readonly steps: number;
}

export interface NormSizes {
  readonly rows: number;
  readonly cols: number;
  readonly eps: number;
}

/**
 * uniform: float32 in [low, high). normal: float32, mean 0 and variance 1. integers: int64 in [low, high), at most 2^32
 * of them. bits: int64 in [0, 2^63). The order is that of RandomKind in native/tensor/random.h.
 */
export const randomKinds = ['uniform', 'normal', 'integers', 'bits'] as const;
export type RandomKind = (typeof randomKinds)[number];

export interface AttentionSizes {
  readonly batch: number;
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
  /** Width of queries and keys. */
  readonly width: number;
  /** Width of values and results. */
  readonly valueWidth: number;
  readonly scale: number;
  /** Query i sees keys 0 … i. */
  readonly causal: boolean;
  /** Probability, below 1, with which a probability is dropped; word ((b·heads + h)·queries + i)·keys + j decides. */
  readonly dropout: number;
  readonly stream: Stream;
}

/**
 * Operands of one type, float32 or float64, with four strides: [batch, heads, rows, width], the last one 1; the mask is
 * [batch, heads, queries, keys], of bool (false hides a key) or of the same type (added to the scores).
 */
export interface AttentionOperands {
  readonly out: Strided;
  /** Dense [batch, heads, queries]: log Σ exp(scores); ∞ where a query sees nothing, and out is 0. */
  readonly lse: Strided;
  readonly q: Strided;
  readonly k: Strided;
  readonly v: Strided;
  readonly mask: Strided | null;
}

export interface AttentionGrads {
  readonly gradOut: Strided;
  readonly gradQ: Strided;
  readonly gradK: Strided;
  readonly gradV: Strided;
}

type Shape = readonly number[];

export interface Kernels extends LayerKernels, LossKernels {
  readonly name: 'reference' | 'native';

  /** Null: without CUDA devices. */
  readonly cuda: DeviceControl | null;

  // Memory. `alloc` does not clear. `adopt` wraps an array of the caller and keeps it alive until free. All
  // operands of a call lie on one device, which computes; on CUDA a call returns when the work has been started.
  readonly alloc: (dtype: DType, count: number, device?: Device) => Memory;
  readonly adopt: (dtype: DType, array: HostArray) => Memory;
  readonly free: (memory: Memory) => void;
  /** Returns the address of the memory, in the address space of its device. */
  readonly address: (memory: Memory) => bigint;
  /** Memory of another library; `free` ends the loan. */
  readonly borrow: (loan: Loan) => Memory;
  /** Copies an array of the memory's dtype to the elements from `offset`. */
  readonly write: (memory: Memory, offset: number, array: HostArray) => void;
  /** Fills an array of the memory's dtype with the elements from `offset`, once they are computed. */
  readonly read: (memory: Memory, offset: number, into: HostArray) => void;
  /** Does what read does without blocking. The memory may be freed meanwhile. */
  readonly readAsync: (memory: Memory, offset: number, into: HostArray) => Promise<void>;
  /** Waits until everything that was started on the device has ended. */
  readonly synchronize: (device: Device) => void;
  /** Gives freed memory that is kept for reuse back to the device. */
  readonly trim: (device: Device) => void;

  /** Threads that share a kernel, the caller included; for the whole process. Results do not depend on it. */
  readonly numThreads: () => number;
  readonly setNumThreads: (count: number) => void;

  // Any dtypes, any strides.
  /** out = op(a, b, c), computed in `compute` (float16 and bfloat16 in float32), rounded once when it is stored. */
  readonly map: (
    op: MapOp,
    compute: DType,
    shape: Shape,
    out: Strided,
    a: Input,
    b?: Input,
    c?: Input,
  ) => void;
  /** out = a. Floats become integers towards zero; anything but 0 becomes true. */
  readonly copy: (shape: Shape, out: Strided, a: Input) => void;
  /** `shape` is a's. out is dense over the dimensions that are kept and has stride 0 along those that are reduced. Over
   *  nothing a sum is 0, a product 1, a mean NaN, a maximum −∞ (integers: their least value). NaN propagates. */
  readonly reduce: (op: ReduceOp, shape: Shape, out: Strided, a: Strided) => void;
  /** As reduce, into int64: the position, among the elements that are reduced, of the first extreme. NaN counts as
   *  the most extreme. Nothing is reduced over size 0. */
  readonly argReduce: (op: 'max' | 'min', shape: Shape, out: Strided, a: Strided) => void;

  /** out[m, n] = op(A)[m, k] · op(B)[k, n] for each index of the batch `shape`; strides and offsets say where its
   *  matrices begin. All float32 or all float64; on CUDA also float16 or bfloat16, summed in float32 and rounded once.
   *  No size is 0; out is dense. */
  readonly matmul: (shape: Shape, out: Strided, a: Strided, b: Strided, sizes: MatmulSizes) => void;

  // Dense operands (their strides are null), float32 or float64: the softmax family, row by row over [rows, cols].
  readonly logSoftmax: (out: Strided, a: Strided, rows: number, cols: number) => void;
  /** gradIn = gradOut − softmax · Σ gradOut, with `out` the forward's log-softmax. */
  readonly logSoftmaxGrad: (
    gradIn: Strided,
    gradOut: Strided,
    out: Strided,
    rows: number,
    cols: number,
  ) => void;
  /** losses[r] = −logProbs[r, labels[r]]; labels int32 or int64, checked by the op. */
  readonly nll: (losses: Strided, logProbs: Strided, labels: Strided, rows: number, cols: number) => void;
  /** gradIn[r, c] = −gradLosses[r] where c is the label, else 0. */
  readonly nllGrad: (
    gradIn: Strided,
    gradLosses: Strided,
    labels: Strided,
    rows: number,
    cols: number,
  ) => void;

  // Dense operands of any dtype.
  /** out[o, j, i] = a[o, index, i]; the index is int64 and inside [0, size). */
  readonly lookup: (out: Strided, a: Strided, index: Strided, sizes: LookupSizes) => void;
  /** out[o, index, i] += a[o, j, i]. */
  readonly scatterAdd: (out: Strided, a: Strided, index: Strided, sizes: LookupSizes) => void;
  /** Running sums along the middle of [outer, size, inner]; from the end when `reverse`. */
  readonly cumsum: (
    out: Strided,
    a: Strided,
    outer: number,
    size: number,
    inner: number,
    reverse: boolean,
  ) => void;
  /** The first `count` of each sorted row, and (int64) where they stood. Stable; NaN counts as the largest. */
  readonly sort: (
    values: Strided,
    indices: Strided,
    a: Strided,
    rows: number,
    cols: number,
    count: number,
    descending: boolean,
  ) => void;
  /** [batch, rows, cols] with zeros above the diagonal (0 the main one, 1 the one above it); below it when `upper`. */
  readonly triangle: (
    out: Strided,
    a: Strided,
    batch: number,
    rows: number,
    cols: number,
    diagonal: number,
    upper: boolean,
  ) => void;

  // Norms, attention and dropout take float16 and bfloat16 too on CUDA: they compute in float32, and mean, rstd and lse
  // are float32 then.

  // Dense rows of one type, float32 or float64: normalisation. Without a mean it is that of the root mean square.
  /**
   * out = (a − mean) · rstd · gamma + beta, with 1 and 0 for a gamma and beta that are null. With an addend,
   * a + addend is normalised and written to `sum`.
   */
  readonly norm: (
    out: Strided,
    mean: Strided | null,
    rstd: Strided,
    a: Strided,
    plus: { readonly addend: Strided; readonly sum: Strided } | null,
    gamma: Strided | null,
    beta: Strided | null,
    sizes: NormSizes,
  ) => void;
  /** Gradients for those of gradIn, gradGamma and gradBeta that are not null; added to gradIn when `accumulate`. */
  readonly normGrad: (
    gradIn: Strided | null,
    gradGamma: Strided | null,
    gradBeta: Strided | null,
    gradOut: Strided,
    a: Strided,
    mean: Strided | null,
    rstd: Strided,
    gamma: Strided | null,
    rows: number,
    cols: number,
    accumulate: boolean,
  ) => void;

  /** out = softmax(scale · q kᵀ + mask) v for each head, and lse. */
  readonly attention: (operands: AttentionOperands, sizes: AttentionSizes) => void;
  /** Writes gradQ, gradK and gradV; reads what the forward read and wrote. */
  readonly attentionGrad: (grads: AttentionGrads, operands: AttentionOperands, sizes: AttentionSizes) => void;

  /** Fills dense memory from a stream. */
  readonly random: (
    kind: RandomKind,
    out: Strided,
    count: number,
    stream: Stream,
    low: number,
    high: number,
  ) => void;
  /** out[i] = 0 where word i of the stream is below ⌊p · 2^32⌋, else a[i] / (1 − p). Dense; p < 1. */
  readonly dropout: (out: Strided, a: Strided, count: number, p: number, stream: Stream) => void;

  // Many tensors in one call, float32 or float64, dense.
  /** One step of an optimiser: changes parameters and states. */
  readonly optimize: (rule: OptimizerRule, tensors: readonly OptimizerTensor[]) => void;
  /** out[0] (float32) = √Σ x² over all elements of all tensors. */
  readonly totalNorm: (out: Strided, tensors: readonly Strided[], counts: readonly number[]) => void;
  /** Multiplies every tensor by a number or by the float32 in memory. Anything that is not finite sets found[0], a
   *  float32, to 1. */
  readonly scale: (
    tensors: readonly Strided[],
    counts: readonly number[],
    factor: Input,
    found: Strided | null,
  ) => void;
}
