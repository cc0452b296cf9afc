// The symbols under which tensors and modules give access to other packages. Types match structurally, so that neither
// side imports the other. They repeat the types that @ringwise/collectives and @ringwise/ddp declare.
import type { DType, HostArray } from './dtype.ts';

// Declared globally, so that these keys and those of the other packages are one type although no package imports them.
declare global {
  interface RingwiseSymbols {
    readonly buffer: unique symbol;
    readonly gradParams: unique symbol;
    readonly frozenParams: unique symbol;
    readonly buffers: unique symbol;
    readonly capture: unique symbol;
    readonly rows: unique symbol;
    readonly differentiable: unique symbol;
  }
}

/** `[Symbol.for('ringwise.buffer')]()` returns the memory of its object. */
export const bufferSymbol: RingwiseSymbols['buffer'] = Symbol.for('ringwise.buffer') as never;
/** `[Symbol.for('ringwise.gradParams')]()` returns the trainable parameters of its object. */
export const gradParamsSymbol: RingwiseSymbols['gradParams'] = Symbol.for('ringwise.gradParams') as never;
/** `[Symbol.for('ringwise.frozenParams')]()` returns the parameters of its object that do not train. */
export const frozenParamsSymbol: RingwiseSymbols['frozenParams'] = Symbol.for(
  'ringwise.frozenParams',
) as never;
/** `[Symbol.for('ringwise.buffers')]()` returns the memory that its object saves but does not train. */
export const buffersSymbol: RingwiseSymbols['buffers'] = Symbol.for('ringwise.buffers') as never;

/** `[Symbol.for('ringwise.rows')]()` returns the rows of a tensor, for dividing a batch. */
export const rowsSymbol: RingwiseSymbols['rows'] = Symbol.for('ringwise.rows') as never;

/** `[Symbol.for('ringwise.differentiable')]()` returns the autograd of a tensor, for collectives with gradients. */
export const differentiableSymbol: RingwiseSymbols['differentiable'] = Symbol.for(
  'ringwise.differentiable',
) as never;

/**
 * A step that is being captured: `globalThis[Symbol.for('ringwise.capture')].now`, null at other times. Work that other
 * packages put on its stream during the capture becomes part of every run and runs at no other time. A package whose
 * work does not run on that stream must refuse.
 */
export interface StepCapture {
  /** The CUstream that is captured. During the capture, handles of buffers name it as their stream. */
  readonly stream: bigint;
  /** Calls `ended` as the last part of the capture, or with true if the capture is given up. */
  readonly onEnd: (ended: (isAbandoned: boolean) => void) => void;
  /**
   * Calls `before` ahead of each run, with the CUstream of the run, and the function that `before` returns after the
   * run has been started. There is no run if `before` throws.
   */
  readonly onRun: (before: (stream: bigint) => () => void) => void;
  /** Destroys the captured step. For packages that must end its use of their resources. */
  readonly drop: () => void;
}

const slots = globalThis as { [key: symbol]: { now: StepCapture | null } | undefined };
const captureSymbol: RingwiseSymbols['capture'] = Symbol.for('ringwise.capture') as never;
// All packages, and all copies of one package, share this object.
slots[captureSymbol] ??= { now: null };
export const sharedCapture = slots[captureSymbol];

/** A flat, contiguous piece of memory. */
export interface BufferView {
  /** Type of the elements. */
  readonly dtype: DType;
  /** Elements. */
  readonly count: number;
  /** Location of the memory. */
  readonly device: { readonly kind: 'cpu' | 'cuda'; readonly index: number };
  /** Null for memory of a device. */
  readonly host: HostArray | null;
  /** Null for memory of the host. */
  readonly handle: DeviceHandle | null;
  /** Set if others must not write this memory now: `reason`, a clause, and `next`, a sentence, for the error text. */
  readonly readOnly?: { readonly reason: string; readonly next: string } | undefined;
  /** Others call it before they write this memory. */
  readonly written?: () => void;
}

/** Memory that JavaScript cannot access. */
export interface DeviceHandle {
  /** Address of the first element, in the address space of the device. */
  readonly address: bigint;
  /** A reference to this object keeps the memory alive. */
  readonly owner: object;
  /** The CUstream that work on this memory is ordered on; absent or 0: the legacy default stream. */
  readonly stream?: bigint;
}

/**
 * A tensor that libraries exchange: the fields of a DLTensor, with its offset added to the address. `handle()` makes
 * one and `fromHandle` accepts one. Work on the memory is ordered on `stream`: the receiver starts its work after the
 * work already on this stream, and makes the stream wait for its own work before it calls `release`.
 */
export interface TensorHandle extends DeviceHandle {
  /** Type of the elements. */
  readonly dtype: DType;
  /** Size of each dimension. */
  readonly shape: readonly number[];
  /**
   * Elements from one index to the next, by dimension, none negative; absent or null: dense, the last index
   * fastest.
   */
  readonly strides?: readonly number[] | null;
  /** For 'cpu', the index is 0 and the address is one of this process. */
  readonly device: { readonly kind: 'cpu' | 'cuda'; readonly index: number };
  /** Elements of memory from the address on. Where it is given, shape and strides must stay inside. */
  readonly count?: number;
  /**
   * Tells the owner, once, that the memory is no longer used. A handle with `release` can be passed to fromHandle()
   * only once.
   */
  readonly release?: () => void;
}

const cpu = { kind: 'cpu', index: 0 } as const;

/** The callbacks that protect memory which a tensor shares. */
type Watch = Pick<BufferView, 'readOnly' | 'written'>;

export function bufferView(dtype: DType, host: HostArray, watch: Watch): BufferView {
  return { dtype, count: host.length, device: cpu, host, handle: null, ...watch };
}

export function deviceBufferView(
  dtype: DType,
  count: number,
  index: number,
  handle: DeviceHandle,
  watch: Watch,
): BufferView {
  return { dtype, count, device: { kind: 'cuda', index }, host: null, handle, ...watch };
}

/** Memory for a gradient: an array on the host, a handle on a device. */
export interface GradMemory {
  readonly host: ArrayBufferView | null;
  readonly handle?: object | null;
  readonly dtype?: string;
  readonly count?: number;
  readonly device?: { readonly kind: string; readonly index: number };
}

/** Memory of a device for gradients that are averaged together, with the operations that averaging needs. */
export interface BucketMemory {
  readonly [bufferSymbol]: () => BufferView;
  readonly part: (offset: number, count: number) => BucketMemory;
  readonly clear: () => void;
  readonly divide: (divisor: number) => void;
  readonly isZero: () => boolean;
}

/** The functions of the autograd of tensors of type `T` that collectives with gradients use. */
export interface Autograd<T> {
  readonly shapeOf: (x: T) => readonly number[];
  readonly isRecorded: (x: T) => boolean;
  readonly empty: (like: T, shape: readonly number[]) => T;
  readonly zeros: (like: T, shape: readonly number[]) => T;
  readonly copy: (x: T) => T;
  readonly toFront: (x: T, dim: number) => T;
  readonly fromFront: (x: T, dim: number) => T;
  readonly narrow: (x: T, dim: number, from: number, count: number) => T;
  readonly join: (parts: readonly T[]) => T;
  readonly scale: (x: T, factor: number) => T;
  readonly keep: (x: T) => void;
  readonly dispose: (x: T) => void;
  readonly untracked: <R>(fn: () => R) => R;
  readonly record: (name: string, output: T, input: T, backward: (grad: T) => T | null) => T;
}

/** Memory of a model that has no gradient, as distributed training sees it. */
export interface StateBuffer {
  readonly name: string;
  readonly value: BufferView;
  readonly readValue: () => ArrayBufferView;
}

/** One parameter that does not train, as distributed training sees it. */
export interface FrozenParam extends StateBuffer {
  readonly key: object;
  readonly shape: readonly number[];
  readonly onGradReady: (ready: () => void) => () => void;
}

/** One trainable parameter, as distributed training sees it. */
export interface GradParam {
  /** Name in the model, such as "0.weight". */
  readonly name: string;
  /** Identifies the parameter: the tensor itself. */
  readonly key: object;
  /** Size of each dimension. */
  readonly shape: readonly number[];
  /** Whether the parameter is trained, rather than frozen. */
  readonly requiresGrad: boolean;
  /** The memory of the parameter. */
  readonly value: BufferView;
  /** The memory of the gradient; null if there is none. */
  readonly grad: BufferView | null;
  /** Calls `ready` whenever the gradient is final in a backward. Returns a function that ends this. */
  readonly onGradReady: (ready: (backward: object) => void) => () => void;
  /** Makes backward write the gradient into `bucket` from now on. */
  readonly bindGrad: (bucket: GradMemory) => void;
  /** Returns memory for `count` elements on the device of the parameter. */
  readonly allocBucket: (count: number) => BucketMemory;
  /** Divides each element of the gradient by `divisor`. */
  readonly divideGrad: (divisor: number) => void;
  /** Returns a copy of the value in host memory. Waits for the device. */
  readonly readValue: () => ArrayBufferView;
  /** Leaves the parameter without a gradient. */
  readonly dropGrad: () => void;
  /** Whether a gradient of zeros is one that the program has filled with zeros, and is not to be dropped. */
  readonly keepsZeros: boolean;
  /** Returns a parameter with a copy of the value in new memory. */
  readonly clone: () => GradParam;
  /** Calls `done` at the end of each backward. Returns a function that ends this. */
  readonly onBackwardEnd: (done: (backward: object) => void) => () => void;
}
