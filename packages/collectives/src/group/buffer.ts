// Buffers: what verbs accept as memory (BufferLike), and the form in which backends see it (BufferView).
import { byteSize, type DType, dtypes } from '../dtype.ts';
import {
  badCarrier,
  CollectiveError,
  detachedBuffer,
  elementsOnDevice,
  type Failure,
  notABuffer,
  resizableBuffer,
  unknownDtype,
  wrongArrayType,
} from '../errors.ts';

/** Kind of memory: of the host, or of a CUDA device. */
export type DeviceKind = 'cpu' | 'cuda';

/** A device, such as the first CUDA device: `{ kind: 'cuda', index: 0 }`. */
export interface Device {
  /** 'cpu', or the kind of the accelerator. */
  readonly kind: DeviceKind;
  /** Number among the devices of its kind, from 0 on. */
  readonly index: number;
}

/** A flat, contiguous piece of memory. Its maker owns it; a running operation borrows it. */
export interface BufferView {
  /** Type of the elements. */
  readonly dtype: DType;
  /** Number of elements, not bytes. */
  readonly count: number;
  /** Where the memory lies. */
  readonly device: Device;
  /**
   * Memory that JavaScript can read: an array of the dtype, or its bytes as Uint8Array or DataView. Null for
   * device memory.
   */
  readonly host: ArrayBufferView | null;
  /** Device memory, which JavaScript cannot read. Null if `host` is set. */
  readonly handle: DeviceHandle | null;
  /**
   * Set while calls must not write this memory: the reason. Read before anything is sent, and the call is
   * refused.
   */
  readonly readOnly?: ReadOnly | undefined;
  /**
   * Called once for each call that writes this memory on this rank: after the call's arguments have been
   * checked, before anything is sent or written. If it throws, the call is refused with that error. Lets the
   * owner of the memory track changes, as an autograd does.
   */
  readonly written?: (() => void) | undefined;
}

/** `reason` is the middle of a sentence; `next` is the sentence that says what to call instead. */
export interface ReadOnly {
  /** Why the memory must not be written: the middle of a sentence. */
  readonly reason: string;
  /** What to call instead: a sentence. */
  readonly next: string;
}

/** Memory on a CUDA device. */
export interface DeviceHandle {
  /** Address of the first element on the device. */
  readonly address: bigint;
  /** Object that owns the memory. A reference to it keeps the memory from being freed. */
  readonly owner: object;
  /**
   * The CUstream that orders the caller's work on this memory; absent or 0 for the legacy default stream. A
   * collective waits for the work that this stream has been given, and `Work.fence()` makes the stream wait
   * for the result.
   */
  readonly stream?: bigint;
}

// Declared in the global scope, where the declarations of all packages merge. So the type checker takes a
// tensor's symbol for this one, although neither package imports the other.
declare global {
  interface RingwiseSymbols {
    readonly buffer: unique symbol;
  }
}
/**
 * The buffer protocol. An object with this member can be passed to collectives without importing anything
 * from ringwise: `[Symbol.for('ringwise.buffer')]()` returns a BufferView of its memory.
 */
export const bufferSymbol: RingwiseSymbols['buffer'] = Symbol.for('ringwise.buffer') as never;

/** An object that offers its memory under `Symbol.for('ringwise.buffer')`, such as a tensor. */
export interface BufferCarrier {
  readonly [bufferSymbol]: () => BufferView;
}

/** The typed arrays whose element type is a dtype. */
export type TypedArray =
  | Float32Array
  | Float64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | Uint8ClampedArray
  | Uint16Array
  | Uint32Array
  | BigUint64Array;

/**
 * Memory with an explicit element type: a Uint16Array for float16 and bfloat16, a Uint8Array for bool and
 * 8-bit floats.
 */
export interface TypedBuffer {
  /** The elements, or for 16-bit and 8-bit floats and bool their bits. */
  readonly data: TypedArray;
  /** Type of the elements that `data` stands for. */
  readonly dtype: DType;
}

/** Everything that the verbs accept as a buffer. */
export type BufferLike = TypedArray | TypedBuffer | BufferCarrier;

const hostDevice: Device = Object.freeze({ kind: 'cpu', index: 0 });

// Compared by tag and not by instanceof, so that arrays of another realm (a vm context, a test runner) are
// accepted.
const dtypeOfTag: Readonly<Record<string, DType>> = {
  Float32Array: 'float32',
  Float64Array: 'float64',
  Float16Array: 'float16',
  Int8Array: 'int8',
  Int16Array: 'int16',
  Int32Array: 'int32',
  BigInt64Array: 'int64',
  Uint8Array: 'uint8',
  Uint8ClampedArray: 'uint8',
  Uint16Array: 'uint16',
  Uint32Array: 'uint32',
  BigUint64Array: 'uint64',
};

/**
 * Returns a view of the memory of `value` without copying it. Throws ERR_COLL_INVALID if `value` is not a
 * buffer; `verb` names the call in the error.
 */
export function asBuffer(value: BufferLike, verb = 'asBuffer'): BufferView {
  if (value instanceof Float32Array) return viewOf(value, 'float32', verb);
  if (ArrayBuffer.isView(value)) {
    const dtype = dtypeOfTag[tagOf(value)];
    if (dtype !== undefined) return viewOf(value, dtype, verb);
  } else if (typeof value === 'object' && value !== null) {
    if (bufferSymbol in value) return checkedView(value[bufferSymbol](), verb);
    if ('data' in value && 'dtype' in value) return viewOfTyped(value, verb);
  }
  return refuse(describe(value, verb));
}

function viewOf(array: TypedArray, dtype: DType, verb: string): BufferView {
  const count = array.length;
  if (count === 0 && isDetached(array.buffer)) return refuse(detachedBuffer(verb));
  if (canShrink(array.buffer)) return refuse(resizableBuffer(verb));
  return { dtype, count, device: hostDevice, host: array, handle: null };
}

function viewOfTyped({ data, dtype }: TypedBuffer, verb: string): BufferView {
  if (!dtypes.includes(dtype)) return refuse(unknownDtype(verb, String(dtype), dtypes));
  if (!ArrayBuffer.isView(data) || !('BYTES_PER_ELEMENT' in data)) {
    return refuse(notABuffer(verb, `{ data, dtype } whose data is ${kindOf(data)}`));
  }
  if (!holds(data, dtype)) {
    return refuse(wrongArrayType(verb, dtype, arrayOf[dtype].name, tagOf(data)));
  }
  return viewOf(data, dtype, verb);
}

/**
 * Returns whether a typed array has the elements of a dtype. An array of another type of the same width does
 * not.
 */
function holds(array: ArrayBufferView, dtype: DType): boolean {
  const tag = tagOf(array);
  return tag === arrayOf[dtype].name || dtypeOfTag[tag] === dtype;
}

function isBytes(array: ArrayBufferView): boolean {
  const tag = tagOf(array);
  return tag === 'Uint8Array' || tag === 'DataView';
}

function tagOf(array: ArrayBufferView): string {
  return (array as ArrayBufferView & { [Symbol.toStringTag]: string })[Symbol.toStringTag];
}

/** Checks a view that another library made. A wrong length would let native code run past the end. */
function checkedView(view: BufferView, verb: string): BufferView {
  const fault = faultOf(view);
  if (fault !== null) return refuse(badCarrier(verb, fault));
  if (view.written !== undefined || view.readOnly !== undefined) return new WatchedView(view);
  const { dtype, count, device, handle } = view;
  const host = typed(view.host);
  return host === view.host ? view : { dtype, count, device, host, handle };
}

/** A view whose owner watches writes. Copies that backends make of it, with spread, are plain data. */
class WatchedView implements BufferView {
  readonly dtype: DType;
  readonly count: number;
  readonly device: Device;
  readonly host: ArrayBufferView | null;
  readonly handle: DeviceHandle | null;
  readonly #given: BufferView;

  constructor(given: BufferView) {
    this.dtype = given.dtype;
    this.count = given.count;
    this.device = given.device;
    this.host = typed(given.host);
    this.handle = given.handle;
    this.#given = given;
  }

  get readOnly(): ReadOnly | undefined {
    return this.#given.readOnly;
  }

  written(): void {
    this.#given.written?.();
  }
}

/** Returns the memory of a DataView as Uint8Array, because native backends take typed arrays only. */
function typed(host: ArrayBufferView | null): ArrayBufferView | null {
  if (host === null || tagOf(host) !== 'DataView') return host;
  return new Uint8Array(host.buffer, host.byteOffset, host.byteLength);
}

function faultOf(view: BufferView): string | null {
  if (typeof view !== 'object' || view === null) return `got ${kindOf(view)}`;
  if (!dtypes.includes(view.dtype)) return `unknown dtype ${String(view.dtype)}`;
  if (!Number.isSafeInteger(view.count) || view.count < 0) return `count is ${String(view.count)}`;
  if (typeof view.device?.kind !== 'string') return 'it has no device';
  if (view.written !== undefined && typeof view.written !== 'function')
    return `written is ${kindOf(view.written)}`;
  if (view.host === null) {
    const isOnHost = view.device.kind === 'cpu';
    return handleFault(view.handle) ?? (isOnHost ? 'its device is cpu, but it has no host memory' : null);
  }
  if (!ArrayBuffer.isView(view.host)) return `host is ${kindOf(view.host)}`;
  if (view.handle !== null) return `handle is ${kindOf(view.handle)} beside host memory; expected null`;
  if (view.device.kind !== 'cpu') return `its device is ${view.device.kind}, but it has host memory`;
  if (!holds(view.host, view.dtype) && !isBytes(view.host))
    return `host is a ${tagOf(view.host)}, which does not hold ${view.dtype}`;
  if (canShrink(view.host.buffer))
    return 'host is in a resizable ArrayBuffer; expected one of a fixed length';
  const bytes = view.count * byteSize(view.dtype);
  if (view.host.byteLength !== bytes) return `expected ${bytes} bytes, host has ${view.host.byteLength}`;
  return view.host.byteOffset % byteSize(view.dtype) === 0 ? null : 'host does not start at a whole element';
}

function handleFault(handle: DeviceHandle | null): string | null {
  if (handle === null) return 'it has neither host nor handle';
  if (typeof handle.address !== 'bigint') return `the address of its handle is ${kindOf(handle.address)}`;
  const { stream = 0n } = handle;
  return typeof stream === 'bigint' ? null : `the stream of its handle is ${kindOf(stream)}`;
}

/**
 * Returns whether resize() can take memory away from a call that uses it: that would end the process by SIGSEGV. A
 * SharedArrayBuffer has no such member, because it can only grow.
 */
function canShrink(memory: ArrayBufferLike): boolean {
  return (memory as { readonly resizable?: boolean }).resizable === true;
}

// ArrayBuffer.prototype.detached is missing on Node 20.
function isDetached(memory: ArrayBufferLike): boolean {
  try {
    new Uint8Array(memory);
    return false;
  } catch {
    return true;
  }
}

function refuse(failure: Failure): never {
  throw new CollectiveError(failure, null);
}

function describe(value: unknown, verb: string): Failure {
  if (Array.isArray(value)) return notABuffer(verb, 'a plain array', 'Use Float32Array.from(array).');
  if (value instanceof DataView)
    return notABuffer(verb, 'a DataView', 'It has no element type: wrap its buffer.');
  if (typeof value === 'number')
    return notABuffer(verb, 'a number', `Put it into an array: Float64Array.of(${String(value)}).`);
  if (value === undefined && (verb === 'gather' || verb === 'scatter'))
    return notABuffer(verb, 'undefined', 'Pass null on the ranks that are not the root.');
  return notABuffer(verb, kindOf(value));
}

function kindOf(value: unknown): string {
  if (value === null || typeof value !== 'object') return value === null ? 'null' : typeof value;
  return `an object (${value.constructor?.name ?? 'without a prototype'})`;
}

const arrayOf = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  bool: Uint8Array,
  float8_e4m3fn: Uint8Array,
  float8_e5m2: Uint8Array,
} as const satisfies Record<DType, new (count: number) => TypedArray>;

/** The typed array type that holds elements of a dtype. */
export type ArrayOf<D extends DType> = InstanceType<(typeof arrayOf)[D]>;

/** Returns whether the type of the typed array alone identifies this dtype. */
export function isPlain(dtype: DType): boolean {
  return dtypeOfTag[arrayOf[dtype].name] === dtype;
}

/** Returns new, zeroed host memory. `memory` may provide it, or return null for memory of this process. */
export function allocHost<D extends DType>(
  count: number,
  dtype: D,
  memory: (bytes: number) => ArrayBuffer | null = () => null,
): BufferView & { readonly dtype: D } {
  const shared = memory(count * byteSize(dtype));
  const host = shared === null ? new arrayOf[dtype](count) : new arrayOf[dtype](shared, 0, count);
  return { dtype, count, device: hostDevice, host, handle: null };
}

/**
 * Returns the elements of host memory as a typed array; 16-bit and 8-bit floats as their bits. Shares the
 * memory of `view`. Throws ERR_COLL_INVALID for device memory.
 */
export function elementsOf<D extends DType>(view: BufferView & { readonly dtype: D }): ArrayOf<D> {
  const { host, dtype, count } = view;
  if (host === null) return refuse(elementsOnDevice(`${view.device.kind}:${view.device.index}`));
  return new arrayOf[dtype](host.buffer as ArrayBuffer, host.byteOffset, count) as ArrayOf<D>;
}
