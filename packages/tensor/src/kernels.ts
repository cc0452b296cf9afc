// The contract between tensors and the code that computes. `reference` is slow, complete TypeScript and defines
// what is right; `native` is C++. One suite (test/kernels-contract.ts) runs against both.
//
// A kernel sees flat memory, shapes and strides; it never allocates, never sees a Tensor and never throws for
// sizes: ops check shapes before they call. `out` never overlaps an input unless a kernel says that it may.

export type DType = 'float32' | 'int32' | 'int64';
export type HostArray = Float32Array | Int32Array | BigInt64Array;

/** A piece of memory of a kernel set. Freed by `Kernels.free`, once, by whoever holds the last reference. */
export interface Memory {
  readonly dtype: DType;
  /** Elements. */
  readonly count: number;
  /** Names the memory inside its kernel set; an integer, so that calls into native code stay cheap. */
  readonly handle: number;
  /** The same memory as JavaScript sees it. Not to be touched after `free`. */
  readonly host: HostArray;
}

export type UnaryOp = 'neg' | 'exp' | 'log' | 'sqrt' | 'square' | 'abs' | 'relu' | 'sigmoid' | 'tanh';
export type BinaryOp =
  | 'add'
  | 'sub'
  | 'mul'
  | 'div'
  | 'max'
  | 'min'
  | 'eq'
  | 'lt'
  | 'reluGrad'
  | 'sigmoidGrad'
  | 'tanhGrad';
export type ReduceOp = 'sum' | 'max';

export interface SgdOptions {
  readonly lr: number;
  readonly momentum: number;
  readonly dampening: number;
  readonly weightDecay: number;
  readonly nesterov: boolean;
  /** True on the first step, when the velocity is set to the gradient instead of being decayed. */
  readonly first: boolean;
}

export interface Kernels {
  readonly name: 'reference' | 'native';

  // Memory. `alloc` does not clear. `adopt` wraps an array that somebody else owns and keeps it alive until free.
  readonly alloc: (dtype: DType, count: number) => Memory;
  readonly adopt: (array: HostArray) => Memory;
  readonly free: (memory: Memory) => void;

  // Movement. `copy` converts between dtypes (towards zero; equal counts); `strided` writes a[strides] densely
  // (transpose, broadcast), in any dtype.
  readonly fill: (out: Memory, value: number) => void;
  readonly copy: (out: Memory, a: Memory) => void;
  readonly strided: (
    out: Memory,
    a: Memory,
    shape: readonly number[],
    strides: readonly number[],
    offset: number,
  ) => void;

  // Elementwise, float32 unless said otherwise. `out` may be `a` (or `b` where its strides are dense).
  // NaN propagates through everything but eq and lt, which give 0; relu, max and min propagate it too.
  readonly unary: (op: UnaryOp, out: Memory, a: Memory) => void;
  /** out is dense in `shape`; strides count elements, 0 broadcasts. add, sub, mul, max, min, eq, lt take int32 and
   *  int64 too (arithmetic wraps); eq and lt write 1 or 0 in the dtype of the inputs. xGrad(a, b): a = gradient of
   *  the output, b = the output of the forward op; writes the gradient of the input. reluGrad is b <= 0 ? 0 : a. */
  readonly binary: (
    op: BinaryOp,
    out: Memory,
    a: Memory,
    b: Memory,
    shape: readonly number[],
    aStrides: readonly number[],
    bStrides: readonly number[],
  ) => void;
  /** out = a × scale + shift. */
  readonly affine: (out: Memory, a: Memory, scale: number, shift: number) => void;
  /** out += a × scale; dense, same count. */
  readonly axpy: (out: Memory, a: Memory, scale: number) => void;

  // Reductions over the middle of a, seen as [outer, size, inner] → [outer, inner]. `reduce` takes every dtype;
  // over size 0 a sum is 0 and a float32 maximum −Infinity.
  readonly reduce: (op: ReduceOp, out: Memory, a: Memory, outer: number, size: number, inner: number) => void;
  /** Index of the first maximum; NaN counts as the largest. `a` of every dtype, `out` is int32; size is not 0. */
  readonly argmax: (out: Memory, a: Memory, outer: number, size: number, inner: number) => void;

  /**
   * out[m,n] = op(A)[m,k] · op(B)[k,n] (+ out when accumulate). Row-major; transA means that A is stored [k,m],
   * transB that B is stored [n,k]. Float32.
   */
  readonly matmul: (
    out: Memory,
    a: Memory,
    b: Memory,
    m: number,
    n: number,
    k: number,
    transA: boolean,
    transB: boolean,
    accumulate: boolean,
  ) => void;

  // Softmax family, row by row over [rows, cols].
  readonly logSoftmax: (out: Memory, a: Memory, rows: number, cols: number) => void;
  /** gradIn = gradOut − softmax · Σ gradOut, with `out` the forward's log-softmax. */
  readonly logSoftmaxGrad: (gradIn: Memory, gradOut: Memory, out: Memory, rows: number, cols: number) => void;
  /** losses[r] = −logProbs[r, labels[r]]; labels int32 or int64, checked by the op. */
  readonly nll: (losses: Memory, logProbs: Memory, labels: Memory, rows: number, cols: number) => void;
  /** gradIn[r, c] = −gradLosses[r] where c is the label, else 0. */
  readonly nllGrad: (gradIn: Memory, gradLosses: Memory, labels: Memory, rows: number, cols: number) => void;

  // Optimiser. Updates param (and velocity, null without momentum) in place. The order of operations is
  // torch.optim.SGD's.
  readonly sgd: (param: Memory, grad: Memory, velocity: Memory | null, options: SgdOptions) => void;
}
