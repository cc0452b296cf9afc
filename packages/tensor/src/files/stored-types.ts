// Element types of files. Files have more types than tensors; the others are read into the narrowest dtype that holds
// all of their values, with two exceptions: floats of 8 bits become float32, and U64 becomes int64, which refuses
// larger values.
import type { FileHandle } from 'node:fs/promises';
import { type ElementType, readFully } from '@ringwise/formats';
import { bytesOf, type DType, type HostArray } from '../core/dtype.ts';
import { bytesIn } from './files.ts';

/**
 * Fills `into` with the elements in `bytes`, which must begin at the start of its buffer. `first` is the position of
 * the first one in the tensor, for error messages.
 */
type Widen = (bytes: Uint8Array, into: HostArray, first: number) => void;

export interface StoredType {
  /** Bytes of an element in the file. */
  readonly bytes: number;
  /** Dtype of the tensor that it is read into. */
  readonly dtype: DType;
  /** Null if elements have the same bytes in the file and in the tensor. */
  readonly widen: Widen | null;
}

/** Thrown for an element that no dtype can hold; the message is the end of a sentence. */
export class StoredProblem extends Error {}

const asItIs = (dtype: DType): StoredType => ({ bytes: bytesOf(dtype), dtype, widen: null });

/** Returns the two halves of each int64, the low one first (hosts are little-endian), so that no BigInt is made. */
const halves = (into: HostArray): Int32Array => new Int32Array(into.buffer, into.byteOffset, into.length * 2);

const toBool: Widen = (bytes, into) => {
  for (let i = 0; i < bytes.length; i++) into[i] = bytes[i] === 0 ? 0 : 1;
};

const toInt32 = (
  bytes: number,
  viewOf: (bytes: Uint8Array) => HostArray | Int8Array | Int16Array,
): StoredType => ({
  bytes,
  dtype: 'int32',
  widen: (from, into) => (into as Int32Array).set(viewOf(from) as Int16Array),
});

const fromUint32: Widen = (bytes, into) => {
  const words = halves(into);
  const values = new Int32Array(bytes.buffer, 0, into.length);
  for (let i = 0; i < values.length; i++) {
    words[2 * i] = values[i]!;
    words[2 * i + 1] = 0;
  }
};

const fromUint64: Widen = (bytes, into, first) => {
  bytesIn(into).set(bytes);
  const words = halves(into);
  for (let i = 0; i < into.length; i++) {
    if (words[2 * i + 1]! >= 0) continue;
    const value = BigInt.asUintN(64, into[i] as bigint);
    throw new StoredProblem(`element ${first + i} is ${value}, and int64 holds at most ${2n ** 63n - 1n}`);
  }
};

/**
 * The special values of floats of 8 bits: 'ieee' has infinities and NaNs, 'fn' a NaN of each sign, 'fnuz' one
 * NaN in place of −0.
 */
type Ending = 'ieee' | 'fn' | 'fnuz';

/**
 * Returns the values of all 256 bit patterns of a type with a sign, 7 − fractionBits bits of exponent and a fraction.
 */
function valuesOf(fractionBits: number, ending: Ending): Float32Array {
  const ones = 2 ** fractionBits;
  const bias = 2 ** (6 - fractionBits) - (ending === 'fnuz' ? 0 : 1);
  const top = 2 ** (7 - fractionBits) - 1;
  return Float32Array.from({ length: 256 }, (_, bits) => {
    const sign = bits >= 128 ? -1 : 1;
    const exponent = Math.floor((bits % 128) / ones);
    const fraction = bits % ones;
    if (ending === 'fnuz' && bits === 128) return NaN;
    if (ending === 'fn' && bits % 128 === 127) return NaN;
    if (ending === 'ieee' && exponent === top) return fraction === 0 ? sign * Infinity : NaN;
    if (exponent === 0) return sign * (fraction / ones) * 2 ** (1 - bias);
    return sign * (1 + fraction / ones) * 2 ** (exponent - bias);
  });
}

/** Returns the values of float8e8m0, which holds powers of two only and is used for scales. */
const exponents = (): Float32Array =>
  Float32Array.from({ length: 256 }, (_, bits) => (bits === 255 ? NaN : 2 ** (bits - 127)));

function float8(values: () => Float32Array): StoredType {
  let table: Float32Array | null = null;
  return {
    bytes: 1,
    dtype: 'float32',
    widen: (bytes, into) => {
      table ??= values();
      for (let i = 0; i < bytes.length; i++) into[i] = table[bytes[i]!]!;
    },
  };
}

export const storedTypes: Readonly<Record<ElementType, StoredType>> = {
  float32: asItIs('float32'),
  float64: asItIs('float64'),
  float16: asItIs('float16'),
  bfloat16: asItIs('bfloat16'),
  int32: asItIs('int32'),
  int64: asItIs('int64'),
  uint8: asItIs('uint8'),
  // Anything but 0 is true, and is 1 in memory.
  bool: { bytes: 1, dtype: 'bool', widen: toBool },
  int8: toInt32(1, (bytes) => new Int8Array(bytes.buffer, 0, bytes.length)),
  int16: toInt32(2, (bytes) => new Int16Array(bytes.buffer, 0, bytes.length / 2)),
  uint16: toInt32(2, (bytes) => new Uint16Array(bytes.buffer, 0, bytes.length / 2)),
  uint32: { bytes: 4, dtype: 'int64', widen: fromUint32 },
  uint64: { bytes: 8, dtype: 'int64', widen: fromUint64 },
  float8e4m3: float8(() => valuesOf(3, 'fn')),
  float8e5m2: float8(() => valuesOf(2, 'ieee')),
  float8e4m3fnuz: float8(() => valuesOf(3, 'fnuz')),
  float8e5m2fnuz: float8(() => valuesOf(2, 'fnuz')),
  float8e8m0: float8(exponents),
};

/** All types that can be read, in the order in which error messages list them. */
export const storableTypes = Object.keys(storedTypes) as readonly ElementType[];

/** Bytes of a file that are widened at a time; a multiple of the size of every element type. */
const pieceBytes = 2 ** 20;

/**
 * Fills `into`, of the dtype to which the stored type belongs, with elements from byte `position` of the file on.
 * `first` is the position of the first one in its tensor. Returns false if the file ends before.
 */
export async function readElements(
  file: FileHandle,
  { bytes: width, widen }: StoredType,
  position: number,
  into: HostArray,
  first = 0,
): Promise<boolean> {
  if (widen === null) return readFully(file, bytesIn(into), position);
  const piece = new Uint8Array(Math.min(into.length * width, pieceBytes));
  for (let done = 0; done < into.length; ) {
    const count = Math.min(into.length - done, pieceBytes / width);
    const bytes = piece.subarray(0, count * width);
    if (!(await readFully(file, bytes, position + done * width))) return false;
    widen(bytes, into.subarray(done, done + count), first + done);
    done += count;
  }
  return true;
}
