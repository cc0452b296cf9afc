// Tensors from numbers. A tensor made here belongs to the scope that is open.
import { kernels } from './backends/index.ts';
import { badArange, badHostArray, raggedData, unknownData, unknownDtype, wrongCount } from './errors.ts';
import type { DType, HostArray } from './kernels.ts';
import { defaultGenerator, type Generator } from './random.ts';
import { checkedShape, countOf, type Shape } from './shape.ts';
import { adopt } from './storage.ts';
import { created, empty, type Tensor } from './tensor.ts';

export type TypedArray =
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;
export type NestedData = number | bigint | readonly NestedData[];

export interface CreationOptions {
  readonly dtype?: DType;
  /** Records operations on the tensor, so that backward fills its `grad`. float32 only. */
  readonly requiresGrad?: boolean;
}

function checkedDtype(op: string, dtype: DType): DType {
  if (dtype === 'float32' || dtype === 'int32' || dtype === 'int64') return dtype;
  throw unknownDtype(op, dtype);
}

/** Sets requiresGrad, which the tensor's own setter checks. */
function finish(tensor: Tensor, options: CreationOptions): Tensor {
  if (options.requiresGrad) tensor.requiresGrad = true;
  return tensor;
}

const isTypedArray = (data: unknown): data is TypedArray =>
  ArrayBuffer.isView(data) && !(data instanceof DataView);

function naturalDtype(data: TypedArray): DType {
  if (data instanceof Float32Array || data instanceof Float64Array) return 'float32';
  const isWide =
    data instanceof BigInt64Array || data instanceof BigUint64Array || data instanceof Uint32Array;
  return isWide ? 'int64' : 'int32';
}

/** Writes numbers into memory of `dtype`, converting each as `to` does: fractions are cut. */
function write(host: HostArray, data: ArrayLike<number | bigint>): void {
  if (host.constructor === data.constructor) {
    (host as Float32Array).set(data as Float32Array);
  } else if (host instanceof BigInt64Array) {
    for (let i = 0; i < host.length; i++) {
      const value = data[i]!;
      host[i] = typeof value === 'bigint' ? value : BigInt(Math.trunc(value));
    }
  } else {
    for (let i = 0; i < host.length; i++) host[i] = Number(data[i]);
  }
}

/** Flattens nested arrays into `flat` and returns their shape. */
function flattenNested(data: unknown, flat: (number | bigint)[]): number[] {
  if (typeof data === 'number' || typeof data === 'bigint') {
    flat.push(data);
    return [];
  }
  if (!Array.isArray(data)) throw unknownData(data);
  let inner: number[] | null = null;
  for (const item of data) {
    const shape = flattenNested(item, flat);
    if (inner !== null && (inner.length !== shape.length || inner.some((size, d) => size !== shape[d]))) {
      throw raggedData(inner, shape);
    }
    inner = shape;
  }
  return [data.length, ...(inner ?? [])];
}

/**
 * A tensor with a copy of `data`: a number, nested arrays of numbers, or a typed array. Without `dtype`, numbers and
 * float arrays become float32, bigints, Uint32Array and BigInt arrays int64, other integer arrays int32.
 */
export function tensor(
  data: NestedData | TypedArray,
  options: CreationOptions & { readonly shape?: Shape } = {},
): Tensor {
  let flat: ArrayLike<number | bigint>;
  let shape: Shape;
  let dtype: DType;
  if (isTypedArray(data)) {
    flat = data;
    shape = [data.length];
    dtype = naturalDtype(data);
  } else {
    const values: (number | bigint)[] = [];
    shape = flattenNested(data, values);
    flat = values;
    dtype = values.some((value) => typeof value === 'bigint') ? 'int64' : 'float32';
  }
  if (options.shape) {
    shape = checkedShape('tensor', options.shape);
    if (countOf(shape) !== flat.length) throw wrongCount('tensor', shape, flat.length);
  }
  const out = empty(checkedDtype('tensor', options.dtype ?? dtype), shape);
  write(out.memory.host, flat);
  return finish(out, options);
}

/**
 * A tensor over the memory of `array`, without a copy: writes on either side are seen by the other. The caller keeps
 * the array valid (and must not transfer its buffer) until the tensor is disposed.
 */
export function fromHost(array: HostArray, shape: Shape = [array.length]): Tensor {
  const isSupported =
    array instanceof Float32Array || array instanceof Int32Array || array instanceof BigInt64Array;
  if (!isSupported) throw badHostArray(array);
  const own = checkedShape('fromHost', shape);
  if (countOf(own) !== array.length) throw wrongCount('fromHost', own, array.length);
  return created(adopt(array), own);
}

/** Every element is `value`. */
export function full(shape: Shape, value: number, options: CreationOptions = {}): Tensor {
  const out = empty(checkedDtype('full', options.dtype ?? 'float32'), checkedShape('full', shape));
  kernels().fill(out.memory, value);
  return finish(out, options);
}

export const zeros = (shape: Shape, options: CreationOptions = {}): Tensor => full(shape, 0, options);
export const ones = (shape: Shape, options: CreationOptions = {}): Tensor => full(shape, 1, options);
/** Zeros in the shape and dtype of another tensor. */
export const zerosLike = (like: Tensor, options: CreationOptions = {}): Tensor =>
  full(like.shape, 0, { dtype: like.dtype, ...options });
/** Ones in the shape and dtype of another tensor. */
export const onesLike = (like: Tensor, options: CreationOptions = {}): Tensor =>
  full(like.shape, 1, { dtype: like.dtype, ...options });

/** start, start + step, … below end. With one argument, from 0 to it. */
export function arange(start: number, end?: number, step = 1, options: CreationOptions = {}): Tensor {
  const from = end === undefined ? 0 : start;
  const count = Math.max(0, Math.ceil(((end ?? start) - from) / step));
  if (!Number.isSafeInteger(count)) throw badArange(from, end ?? start, step);
  return tensor(
    Float64Array.from({ length: count }, (_, i) => from + i * step),
    options,
  );
}

export interface RandomOptions {
  /** Default: the generator that manualSeed seeds. */
  readonly generator?: Generator;
  readonly requiresGrad?: boolean;
}

/** Uniform in [0, 1), float32. */
export function rand(shape: Shape, options: RandomOptions = {}): Tensor {
  const out = empty('float32', checkedShape('rand', shape));
  (options.generator ?? defaultGenerator()).uniform(out.memory.host as Float32Array);
  return finish(out, options);
}

/** Normal with mean 0 and variance 1, float32. */
export function randn(shape: Shape, options: RandomOptions = {}): Tensor {
  const out = empty('float32', checkedShape('randn', shape));
  (options.generator ?? defaultGenerator()).normal(out.memory.host as Float32Array);
  return finish(out, options);
}
