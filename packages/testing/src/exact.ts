// Makes inputs whose reductions are exact in every order, so that tests can compare with ===. (nccl-tests does the same
// for its checks.) Values are 0 and small powers of two, with signs where the type has them: sums over 64 ranks fit
// every type, products stay powers of two. int8 holds only -1, 0 and 1, since 64 times 2 would overflow.

import { bfloat16Bits, bfloat16Value, float16Bits, float16Value } from './half.ts';

const numericArrays = {
  float64: Float64Array,
  float32: Float32Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
} as const;

type NumericDType = keyof typeof numericArrays;
type NumericArray = InstanceType<(typeof numericArrays)[NumericDType]>;

export const exactDTypes = [
  ...(Object.keys(numericArrays) as NumericDType[]),
  'int64',
  'uint64',
  'float16',
  'bfloat16',
  'bool',
] as const;

export type ExactDType = (typeof exactDTypes)[number];
export type ExactOp = 'sum' | 'avg' | 'prod' | 'min' | 'max' | 'band' | 'bor' | 'bxor';

/** A typed array, together with the name of its dtype if the type of the array does not determine it. */
export type ExactBuffer =
  | NumericArray
  | BigInt64Array
  | BigUint64Array
  | { readonly data: Uint16Array; readonly dtype: 'float16' | 'bfloat16' }
  | { readonly data: Uint8Array; readonly dtype: 'bool' };

const signedValues = [0, 1, -1, 2, -2, 4, -4];
const unsignedValues = [0, 1, 2];

/** Returns the input of one rank: the same for the same arguments, different between ranks and seeds. */
export function exactInput(rank: number, count: number, dtype: ExactDType, seed = 0): ExactBuffer {
  return stored(numbersOf(rank, count, dtype, seed), dtype);
}

/**
 * Returns the reduction of exactInput(rank, ...) over the ranks 0 to size - 1, as toNumbers() would. Bools reduce as
 * logical values: sum is or, prod is and. Throws a RangeError where the result is not exact in every order: averages
 * that the type cannot hold, products that are too large.
 */
export function expectedReduce(
  op: ExactOp,
  size: number,
  count: number,
  dtype: ExactDType,
  seed = 0,
): number[] {
  const inputs = Array.from({ length: size }, (_, rank) => numbersOf(rank, count, dtype, seed));
  const reduce = reducerOf(op, dtype);
  const reduced = Array.from({ length: count }, (_, index) => {
    const result = inputs.map((input) => input[index]!).reduce(reduce);
    return op === 'avg' ? result / size : result;
  });
  const held = toNumbers(stored(reduced, dtype));
  const wrong = reduced.findIndex((value, index) => value !== held[index]);
  if (wrong >= 0)
    throw new RangeError(`${op} over ${size} ranks: ${reduced[wrong]} is not exact in ${dtype}`);
  return held;
}

/** Returns the elements as numbers, with 0 for -0 so that toEqual() works. 64-bit integers beyond 2^53 lose digits. */
export function toNumbers(buffer: ExactBuffer): number[] {
  return rawNumbers(buffer).map((value) => value + 0);
}

function rawNumbers(buffer: ExactBuffer): number[] {
  if (!('dtype' in buffer)) return Array.from(buffer as Iterable<number | bigint>, Number);
  if (buffer.dtype === 'bool') return Array.from(buffer.data);
  return Array.from(buffer.data, buffer.dtype === 'float16' ? float16Value : bfloat16Value);
}

function numbersOf(rank: number, count: number, dtype: ExactDType, seed: number): number[] {
  const values = valuesOf(dtype);
  return Array.from({ length: count }, (_, index) => values[hash(seed, rank, index) % values.length]!);
}

function valuesOf(dtype: ExactDType): readonly number[] {
  if (dtype === 'bool') return [0, 1];
  if (dtype === 'int8') return [0, 1, -1];
  return dtype.startsWith('uint') ? unsignedValues : signedValues;
}

function stored(numbers: readonly number[], dtype: ExactDType): ExactBuffer {
  switch (dtype) {
    case 'float16':
      return { data: Uint16Array.from(numbers, float16Bits), dtype };
    case 'bfloat16':
      return { data: Uint16Array.from(numbers, bfloat16Bits), dtype };
    case 'bool':
      return { data: Uint8Array.from(numbers), dtype };
    case 'int64':
      return BigInt64Array.from(numbers, BigInt);
    case 'uint64':
      return BigUint64Array.from(numbers, BigInt);
    default:
      return numericArrays[dtype].from(numbers);
  }
}

function reducerOf(op: ExactOp, dtype: ExactDType): (a: number, b: number) => number {
  const isFloat = dtype.includes('float');
  if (isFloat && op.startsWith('b')) throw new RangeError(`${op} is not defined for ${dtype}`);
  if (dtype === 'bool') {
    if (op === 'avg') throw new RangeError('avg is not defined for bool');
    if (op === 'bxor') return (a, b) => a ^ b;
    return op === 'sum' || op === 'max' || op === 'bor' ? (a, b) => a | b : (a, b) => a & b;
  }
  switch (op) {
    case 'sum':
    case 'avg':
      return (a, b) => a + b;
    case 'prod':
      return (a, b) => a * b;
    case 'min':
      return (a, b) => Math.min(a, b);
    case 'max':
      return (a, b) => Math.max(a, b);
    case 'band':
      return (a, b) => a & b;
    case 'bor':
      return (a, b) => a | b;
    case 'bxor':
      return (a, b) => a ^ b;
  }
}

/** Mixes three small integers into 32 bits (the finalizer of MurmurHash3). */
function hash(seed: number, rank: number, index: number): number {
  let bits =
    Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(rank + 1, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35);
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
