// The contract between tensors and the code that computes. `reference` is slow, complete TypeScript and defines what is
// right; `native` is C++. One suite (test/support/kernels-contract.ts) runs against both. Kernels are declared in
// declarations/declarations.ts; this file adds memory, and the signatures of the kernels that are not inferred from
// there: those that walk, because they run for every elementwise op and their call has to cost least, and those of
// lists.
//
// A kernel sees memory, shapes and strides; it never allocates memory of tensors and never sees a Tensor. Ops check
// shapes before they call: where the native binding refuses a size, this package has a bug. There are few kernels:
// broadcasting is a stride of 0, a slice is an offset, a transpose is an order of strides, and conversion between
// dtypes happens when an element is read or written. So an elementwise op is one expression in a kernel set, for all
// dtypes and all layouts.

import type { DType, HostArray } from '../core/dtype.ts';
import type { Device } from '../device/device.ts';
import type { DeviceControl } from '../device/device-control.ts';
import type { denseKernels, listKernels, parts, walkKernels } from './declarations/declarations.ts';
import type { AttributesOf, FunctionOf, OperandsOf } from './declarations/declare.ts';
import type { MapOp, ReduceOp } from './declarations/names.ts';
import type { Input, Memory, Strided } from './operands.ts';

/** Memory that another library lends. */
export interface Loan {
  readonly dtype: DType;
  /** Elements. */
  readonly count: number;
  readonly device: Device;
  /** Address of the first element, in the address space of the device. */
  readonly address: bigint;
  /** An object that is kept alive until nothing works with the memory any more. */
  readonly owner: object;
  /** Called once, when nothing works with the memory any more; must neither throw nor call kernels. */
  readonly release: (() => void) | null;
  /**
   * The CUstream of the owner's work: kernels here run after the work already on this stream, and work added to it
   * after `release` runs after these kernels. Null if the caller orders the work.
   */
  readonly stream: bigint | null;
}

type Dense = typeof denseKernels;
export type DenseName = keyof Dense;
export type WalkName = keyof typeof walkKernels;
export type ListName = keyof typeof listKernels;
/** The kernels over dense operands: each receives the operands and attributes of its declaration. */
export type DenseKernels = { readonly [Name in DenseName]: FunctionOf<Dense[Name]> };

/** The operands and attributes of a call of one dense kernel. */
export type OperandsFor<Name extends DenseName> = OperandsOf<Dense[Name]>;
export type AttributesFor<Name extends DenseName> = AttributesOf<Dense[Name]>;
export type MatmulSizes = AttributesOf<typeof walkKernels.matmul>;
export type ConvSizes = AttributesOf<typeof parts.ConvSizes>;
export type Window = ConvSizes['window'];
export type LookupSizes = AttributesOf<typeof parts.LookupSizes>;
export type PoolSizes = AttributesOf<typeof parts.PoolSizes>;

/** The update rule of an optimiser; numbers and order of operations are those of torch.optim. */
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

/** A parameter with its gradient and state, all dense, of one dtype (float32 or float64) and of `count` elements. */
export interface OptimizerTensor {
  readonly param: Strided;
  readonly grad: Strided;
  /** Up to three; null where the rule needs none. Zeros before the first step. */
  readonly states: readonly (Strided | null)[];
  readonly count: number;
  /** The number of this step for the parameter, from 1; always 1 if the rule needs no states. */
  readonly steps: number;
}

type Shape = readonly number[];

/**
 * Memory. The elements of memory from `alloc` are undefined until they are written. `adopt` wraps an array of the
 * caller and keeps it alive until `free`.
 */
export interface MemoryFunctions {
  readonly alloc: (dtype: DType, count: number, device?: Device) => Memory;
  readonly adopt: (dtype: DType, array: HostArray) => Memory;
  readonly free: (memory: Pick<Memory, 'handle'>) => void;
  /** Returns the address of the memory, in the address space of its device. */
  readonly address: (memory: Memory) => bigint;
  /** Wraps memory of another library; `free` ends the loan. */
  readonly borrow: (loan: Loan) => Memory;
  /** Copies an array of the memory's dtype to the elements from `offset`. */
  readonly write: (memory: Memory, offset: number, array: HostArray) => void;
  /**
   * Fills an array of the memory's dtype with the elements from `offset`. Waits for all earlier work of the current
   * stream.
   */
  readonly read: (memory: Memory, offset: number, into: HostArray) => void;
  /** Does the same as `read`, without blocking. The memory may be freed before the promise resolves. */
  readonly readAsync: (memory: Memory, offset: number, into: HostArray) => Promise<void>;
  /** Waits until everything that was started on the device has ended. */
  readonly synchronize: (device: Device) => void;
  /** Returns cached free memory to the device. */
  readonly trim: (device: Device) => void;

  /** Returns the number of threads that share a kernel, the caller's included. Results do not depend on it. */
  readonly numThreads: () => number;
  /** Sets it for the whole process. */
  readonly setNumThreads: (count: number) => void;
}

/** Kernels over operands of any dtypes and any strides. */
export interface WalkKernels {
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
  /**
   * `shape` is a's. out is dense over the dimensions that are kept and has stride 0 along those that are reduced. Over
   * nothing a sum is 0, a product 1, a mean NaN, a maximum −∞ and a minimum ∞ (ops never reduce integers to the extreme
   * of nothing). NaN propagates.
   */
  readonly reduce: (op: ReduceOp, shape: Shape, out: Strided, a: Strided) => void;
  /** Writes, in int64, the position of the first extreme among the elements that are reduced to one. NaN counts as
   *  the most extreme. No dimension that is reduced has size 0. */
  readonly argReduce: (op: 'max' | 'min', shape: Shape, out: Strided, a: Strided) => void;

  /**
   * out[m, n] = A[m, k] · B[k, n], with A and B transposed where `sizes` says so, for each index of the batch `shape`;
   * strides and offsets say where its matrices begin. All float32 or all float64; on CUDA also float16 or bfloat16,
   * summed in float32 and rounded once. No size is 0; out is dense.
   */
  readonly matmul: (shape: Shape, out: Strided, a: Strided, b: Strided, sizes: MatmulSizes) => void;
}

/** Kernels over many dense tensors of float32 or float64, in one call. */
export interface ListKernels {
  /** One step of an optimiser: changes parameters and states. */
  readonly optimize: (rule: OptimizerRule, tensors: readonly OptimizerTensor[]) => void;
  /** out[0] (float32) = √Σ x² over all elements of all tensors. */
  readonly totalNorm: (out: Strided, tensors: readonly Strided[], counts: readonly number[]) => void;
  /**
   * Multiplies every tensor by a number or by the float32 in memory. Sets found[0], a float32, to 1 if an element was
   * not finite before, and leaves it alone otherwise.
   */
  readonly scale: (
    tensors: readonly Strided[],
    counts: readonly number[],
    factor: Input,
    found: Strided | null,
  ) => void;
}

/**
 * A kernel set. All operands of a call are on one device, which computes; on CUDA a call returns when the work has been
 * started.
 */
export interface Kernels extends MemoryFunctions, WalkKernels, DenseKernels, ListKernels {
  readonly name: 'reference' | 'native';
  /** The control of CUDA devices; null for the reference kernels. The native ones have it also without a device. */
  readonly cuda: DeviceControl | null;
}
