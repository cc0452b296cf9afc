// Makes tensors from numbers. A new tensor belongs to the innermost open scope.

import { kernels } from '../backends/index.ts';
import type { Memory } from '../backends/operands.ts';
import { doesNotFit, notOfBool } from '../checks/argument-errors.ts';
import { checkFits } from '../checks/arguments.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import {
  anyNumber,
  anything,
  aTensor,
  aTypedArray,
  checkValue,
  finite,
  flag,
  nonNegativeInteger,
} from '../checks/value-checks.ts';
import { type Device, deviceOf } from '../device/device.ts';
import {
  badArange,
  badHostArray,
  badOption,
  lostMemory,
  onlyPinnedOnHost,
  raggedData,
  resizableMemory,
  unknownData,
  unknownDtype,
  wrongCount,
} from '../errors.ts';
import { to } from '../ops/elementwise/convert.ts';
import { type DType, dtypeInfo, dtypeOfArray, type HostArray, holds, isFloat } from './dtype.ts';
import { type Value, writer } from './element.ts';
import { hostNumbers } from './host-numbers.ts';
import { adopt, allocatePinned, pinnedArray } from './memory/storage.ts';
import type { CreationOptions } from './op-options.ts';
import { checkedShape, countOf, mostDims, type Shape } from './shape.ts';
import { created, type Tensor, empty as unset } from './tensor.ts';

/** The typed arrays that a tensor may be made from. */
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
/** Values for a tensor: numbers in arrays, one level of arrays for each dimension. */
export type NestedData = number | bigint | boolean | readonly NestedData[];

/** The checks of creation options; dtype and device are checked where they are used. */
export const creationChecks = { dtype: anything, device: anything, pinMemory: flag, requiresGrad: flag };
const creationOptions = optionChecks<CreationOptions>(creationChecks);
const tensorOptions = optionChecks<CreationOptions & { readonly shape?: Shape }>({
  ...creationChecks,
  shape: anything,
});
const fromHostOptions = optionChecks<{ readonly dtype?: DType }>({ dtype: anything });

function checkedDtype(op: string, dtype: DType): DType {
  if (Object.hasOwn(dtypeInfo, dtype)) return dtype;
  throw unknownDtype(op, dtype);
}

/** Moves the tensor to its device, and sets requiresGrad, which the tensor's own setter checks. */
function finish(tensor: Tensor, options: Omit<CreationOptions, 'dtype'>): Tensor {
  const out = to(tensor, deviceOf(options.device ?? 'cpu'));
  if (out !== tensor) tensor.dispose();
  if (options.requiresGrad) out.requiresGrad = true;
  return out;
}

function emptyPinned(dtype: DType, shape: Shape, { device = 'cpu' }: CreationOptions): Tensor {
  if (device !== 'cpu') throw onlyPinnedOnHost(device);
  return created(allocatePinned(dtype, countOf(shape)), shape);
}

const isTypedArray = (data: unknown): data is TypedArray =>
  ArrayBuffer.isView(data) && !(data instanceof DataView);

/** Returns the dtype of an array. A Uint16Array holds integers here; only fromHost interprets it as float16. */
function naturalDtype(data: TypedArray): DType {
  if (data instanceof Uint8ClampedArray) return 'uint8';
  if (data instanceof BigUint64Array || data instanceof Uint32Array) return 'int64';
  return data instanceof Uint16Array ? 'int32' : (dtypeOfArray(data) ?? 'int32');
}

/** Writes `data`, which is of `dtype`, to memory. Converts as `to` does: integers drop fractions and wrap around. */
function write(memory: Memory, data: ArrayLike<Value>, dtype: DType): void {
  if (memory.dtype === dtype && memory.host.constructor === data.constructor) {
    (memory.host as Float32Array).set(data as Float32Array);
    return;
  }
  const put = writer(memory);
  for (let i = 0; i < data.length; i++) put(i, data[i]!);
}

interface Flat {
  readonly values: Value[];
  /** int64 if an element is a bigint, else float32 if one is a number, else bool. */
  dtype: DType;
}

/** Flattens nested arrays into `flat` and returns their shape. `depth` is the number of arrays around `data`. */
function flattenNested(data: unknown, flat: Flat, depth = 0): number[] {
  if (typeof data === 'boolean') {
    flat.values.push(Number(data));
    return [];
  }
  if (typeof data === 'number' || typeof data === 'bigint') {
    if (typeof data === 'bigint') flat.dtype = 'int64';
    else if (flat.dtype === 'bool') flat.dtype = 'float32';
    flat.values.push(data);
    return [];
  }
  if (!Array.isArray(data)) throw unknownData(data);
  // An array that contains itself has no end.
  if (depth === mostDims) throw badOption('tensor: data', `at most ${mostDims} nested arrays`, 'more');
  let inner: number[] | null = null;
  for (const item of data) {
    const shape = flattenNested(item, flat, depth + 1);
    if (inner !== null && (inner.length !== shape.length || inner.some((size, d) => size !== shape[d]))) {
      throw raggedData(inner, shape);
    }
    inner = shape;
  }
  return [data.length, ...(inner ?? [])];
}

function checkValues(values: readonly Value[], dtype: DType): void {
  for (const value of values) if (!holds(dtype, value)) throw doesNotFit('tensor', value, dtype);
}

/**
 * Throws for a fraction beside bigints, because the tensor would become int64 although the program has not requested
 * it.
 */
function checkWhole(values: readonly Value[]): void {
  const fraction = values.find((value) => typeof value === 'number' && !Number.isInteger(value));
  if (fraction !== undefined)
    throw badOption(
      'tensor: data',
      "integers beside a bigint, or dtype: 'int64', which drops fractions",
      `${fraction}`,
    );
}

/**
 * Makes a tensor with a copy of `data`: a number or boolean, nested arrays of them, or a typed array. Without `dtype`,
 * numbers become float32, booleans bool, and all elements int64 if one is a bigint; a typed array keeps its dtype if
 * tensors have it, else gets a wider one, or int64 for a BigUint64Array. Integers drop fractions. Values that an
 * integer dtype cannot hold throw, except in typed arrays, where they wrap around.
 */
export function tensor(
  data: NestedData | TypedArray,
  options: CreationOptions & { readonly shape?: Shape } = {},
): Tensor {
  checkOptions('tensor', options, tensorOptions);
  const flat: Flat = { values: [], dtype: 'bool' };
  const isArray = isTypedArray(data);
  if (isArray) checkAttached('tensor', data);
  let shape: Shape = isArray ? [data.length] : flattenNested(data, flat);
  const values = isArray ? data : flat.values;
  const found = isArray ? naturalDtype(data) : values.length === 0 ? 'float32' : flat.dtype;
  if (options.shape) {
    shape = checkedShape('tensor', options.shape);
    if (countOf(shape) !== values.length) throw wrongCount('tensor', shape, values.length);
  }
  const dtype = checkedDtype('tensor', options.dtype ?? found);
  if (!isArray && !isFloat(dtype)) checkValues(flat.values, dtype);
  if (options.dtype === undefined && flat.dtype === 'int64') checkWhole(flat.values);
  const out = options.pinMemory ? emptyPinned(dtype, shape, options) : unset(dtype, shape);
  write(out.memory, values, found);
  return finish(out, options);
}

/** Throws if the memory of an array was transferred: the array is empty then. */
function checkAttached(op: string, array: ArrayBufferView): void {
  if (array.byteLength > 0) return;
  try {
    new Uint8Array(array.buffer); // ArrayBuffer.prototype.detached is missing on Node 20
  } catch {
    throw lostMemory(op);
  }
}

/**
 * Makes a tensor over the memory of `array` without a copy: writes to one are visible in the other. The caller must not
 * transfer the array's buffer before the tensor and its views are disposed. `dtype` selects bfloat16 for a Uint16Array,
 * which otherwise holds float16, and bool for a Uint8Array. Throws for a resizable buffer, whose memory could be taken
 * away from a kernel.
 */
export function fromHost(
  array: HostArray,
  shape: Shape = [array?.length ?? 0],
  options: { readonly dtype?: DType } = {},
): Tensor {
  checkOptions('fromHost', options, fromHostOptions);
  const dtype = options.dtype ?? dtypeOfArray(array);
  if (dtype === undefined || !(array instanceof dtypeInfo[checkedDtype('fromHost', dtype)].array)) {
    throw badHostArray(array, dtype);
  }
  checkAttached('fromHost', array);
  if ((array.buffer as { readonly resizable?: boolean }).resizable === true) throw resizableMemory();
  const own = checkedShape('fromHost', shape);
  if (countOf(own) !== array.length) throw wrongCount('fromHost', own, array.length);
  return created(adopt(dtype, array), own);
}

/**
 * Returns a copy of a typed array in pinned host memory; tensors that fromHost makes over the copy are pinned. The
 * memory returns to a cache when the copy has been garbage-collected and no device reads it. Pass this function to a
 * DataLoader as `pinMemory`. Throws ERR_TENSOR_DEVICE without CUDA.
 */
export function pinArray<A extends TypedArray>(array: A): A {
  checkValue('pinArray', array, aTypedArray);
  const memory = pinnedArray('uint8', array.byteLength).buffer;
  const Same = array.constructor as new (buffer: ArrayBufferLike, byteOffset: number, length: number) => A;
  const pinned = new Same(memory, 0, array.length);
  pinned.set(array as never);
  return pinned;
}

/** Makes a tensor whose elements are `value`, which must fit the dtype; integers drop fractions. */
export function full(shape: Shape, value: number, options: CreationOptions = {}): Tensor {
  checkValue('full: value', value, anyNumber);
  return filled('full', shape, value, options);
}

/** Makes a tensor with the elements `value`, or with elements that are not set if it is null. */
function filled(op: string, shape: Shape, value: number | null, options: CreationOptions): Tensor {
  checkOptions(op, options, creationOptions);
  const dtype = checkedDtype(op, options.dtype ?? 'float32');
  if (value !== null) checkFits(op, value, dtype);
  const own = checkedShape(op, shape);
  const { device = 'cpu' } = options;
  const out = options.pinMemory ? emptyPinned(dtype, own, options) : unset(dtype, own, deviceOf(device));
  if (value !== null) kernels().copy(out.shape, out.strided, value);
  if (options.requiresGrad) out.requiresGrad = true;
  return out;
}

/** Makes a tensor with uninitialised elements: write all of them before you read one. */
export const empty = (shape: Shape, options: CreationOptions = {}): Tensor =>
  filled('empty', shape, null, options);
/** Makes a tensor of the shape, dtype and device of another tensor, with uninitialised elements. */
export const emptyLike = (like: Tensor, options: CreationOptions = {}): Tensor =>
  filledLike('emptyLike', like, null, options);
/** Makes a tensor of the shape, dtype and device of another tensor, whose elements are `value`, which must fit. */
export function fullLike(like: Tensor, value: number, options: CreationOptions = {}): Tensor {
  checkValue('fullLike: value', value, anyNumber);
  return filledLike('fullLike', like, value, options);
}

/** Makes a tensor of zeros. */
export const zeros = (shape: Shape, options: CreationOptions = {}): Tensor =>
  filled('zeros', shape, 0, options);
/** Makes a tensor of ones. */
export const ones = (shape: Shape, options: CreationOptions = {}): Tensor =>
  filled('ones', shape, 1, options);
/** Makes zeros of the shape, dtype and device of another tensor. */
export const zerosLike = (like: Tensor, options: CreationOptions = {}): Tensor =>
  filledLike('zerosLike', like, 0, options);
/** Makes ones of the shape, dtype and device of another tensor. */
export const onesLike = (like: Tensor, options: CreationOptions = {}): Tensor =>
  filledLike('onesLike', like, 1, options);

function filledLike(op: string, like: Tensor, value: number | null, options: CreationOptions): Tensor {
  checkValue(op, like, aTensor);
  checkOptions(op, options, creationOptions);
  return filled(op, like.shape, value, { dtype: like.dtype, device: like.device, ...options });
}

/** Arguments after the first number of a call: further numbers, and options as the last one. */
type NumbersThenOptions = readonly (number | CreationOptions | undefined)[];

/** Returns the numbers of a call, at most `most`, and its options. */
function split(rest: NumbersThenOptions, most: number): [(number | undefined)[], CreationOptions] {
  const hasOptions = rest.length > most || typeof rest.at(-1) === 'object';
  const { numbers, options = {} } = hasOptions
    ? { numbers: rest.slice(0, -1), options: rest.at(-1) }
    : { numbers: rest };
  return [numbers as (number | undefined)[], options as CreationOptions];
}

/** Makes 0, 1, … up to `end`, which is excluded. Default float32. */
export function arange(end: number, options?: CreationOptions): Tensor;
/** Makes start, start + 1, … up to `end`, which is excluded. Default float32. */
export function arange(start: number, end: number, options?: CreationOptions): Tensor;
/** Makes start, start + step, … up to `end`, which is excluded; with undefined as `end`, from 0 to `start`. */
export function arange(
  start: number,
  end: number | undefined,
  step?: number,
  options?: CreationOptions,
): Tensor;
export function arange(start: number, ...rest: NumbersThenOptions): Tensor {
  const [[end, step = 1], options] = split(rest, 2);
  checkOptions('arange', options, creationOptions);
  if (options.dtype === 'bool') throw notOfBool('arange', "an integer dtype, and .to('bool')");
  for (const value of [start, end ?? 0, step])
    if (typeof value !== 'number') throw badArange(start, end ?? 0, step);
  const from = end === undefined ? 0 : start;
  const steps = ((end ?? start) - from) / step;
  const count = Math.ceil(steps);
  if (!Number.isSafeInteger(count) || steps < 0) throw badArange(from, end ?? start, step);
  const device = deviceOf(options.device ?? 'cpu');
  if (device !== 'cpu' && count > 0 && !options.pinMemory) {
    const dtype = checkedDtype('arange', options.dtype ?? 'float32');
    return finish(arangeOn(device, dtype, from, step, count), options);
  }
  return tensor(
    hostNumbers(count, (i) => from + i * step),
    { dtype: 'float32', ...options },
  );
}

/**
 * Makes from, from + step, … by kernels of the device. So a step that is captured may make them, which could not copy
 * from the host. The numbers are float64 until the end, as on the CPU.
 */
function arangeOn(device: Device, dtype: DType, from: number, step: number, count: number): Tensor {
  const shape = [count];
  const out = unset(dtype, shape, device);
  const values = unset('float64', shape, device);
  const ones = unset('float64', shape, device);
  kernels().copy(shape, ones.strided, 1);
  kernels().cumsum(
    { out: values.strided, a: ones.strided },
    { outer: 1, size: count, inner: 1, reverse: false },
  );
  const change = (op: 'add' | 'mul', by: number) =>
    kernels().map(op, 'float64', shape, values.strided, values.strided, by);
  change('add', -1);
  change('mul', step);
  change('add', from);
  kernels().copy(shape, out.strided, values.strided);
  values.dispose();
  ones.dispose();
  return out;
}

/** Makes `count` numbers at equal distances from `start` to `end`, both included; only `start` if `count` is 1. */
export function linspace(start: number, end: number, count: number, options: CreationOptions = {}): Tensor {
  checkOptions('linspace', options, creationOptions);
  checkValue('linspace: start', start, finite);
  checkValue('linspace: end', end, finite);
  checkValue('linspace: count', count, nonNegativeInteger);
  return tensor(spaced(start, end, count), { dtype: 'float32', ...options });
}

function spaced(start: number, end: number, count: number): Float64Array {
  const step = count > 1 ? (end - start) / (count - 1) : 0;
  // Computed from the nearer end, so that the last number is exactly `end`.
  const at = (i: number): number => (2 * i < count ? start + i * step : end - (count - 1 - i) * step);
  return hostNumbers(count, at);
}

/** Options of logspace(). */
export interface LogspaceOptions extends CreationOptions {
  /** The number that is raised to the powers. Default 10. */
  readonly base?: number;
}

const logspaceOptions = optionChecks<LogspaceOptions>({ ...creationChecks, base: finite });

/** Makes `count` powers of the base, with exponents at equal distances from `start` to `end`, both included. */
export function logspace(start: number, end: number, count: number, options: LogspaceOptions = {}): Tensor {
  checkOptions('logspace', options, logspaceOptions);
  checkValue('logspace: start', start, finite);
  checkValue('logspace: end', end, finite);
  checkValue('logspace: count', count, nonNegativeInteger);
  const { base = 10, ...rest } = options;
  return tensor(
    spaced(start, end, count).map((exponent) => base ** exponent),
    { dtype: 'float32', ...rest },
  );
}

/** Makes the identity matrix of this size. Default float32. */
export function eye(size: number, options?: CreationOptions): Tensor;
/** Makes a matrix [rows, cols] with ones on its diagonal; a square one if `cols` is undefined. Default float32. */
export function eye(rows: number, cols: number | undefined, options?: CreationOptions): Tensor;
export function eye(rows: number, ...rest: NumbersThenOptions): Tensor {
  const [[cols = rows], options] = split(rest, 1);
  checkOptions('eye', options, creationOptions);
  const shape = checkedShape('eye', [rows, cols]);
  const values = hostNumbers(countOf(shape));
  for (let i = 0; i < Math.min(rows, cols); i++) values[i * cols + i] = 1;
  return tensor(values, { dtype: 'float32', ...options, shape });
}
