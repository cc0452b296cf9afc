// Element types. JavaScript has no typed arrays for bfloat16 and 8-bit floats, and for float16 only in new
// versions. So float16 and bfloat16 are passed as { data: Uint16Array, dtype } and 8-bit floats as
// { data: Uint8Array, dtype }; a Float16Array is accepted, too. A bool is one byte, 0 or 1.

/** All element types, in the order of the enum in native/base/dtype.h. */
export const dtypes = [
  'float32',
  'float64',
  'float16',
  'bfloat16',
  'int8',
  'int16',
  'int32',
  'int64',
  'uint8',
  'uint16',
  'uint32',
  'uint64',
  'bool',
  'float8_e4m3fn',
  'float8_e5m2',
] as const;

/** Element type of a buffer. bool and floats of 16 and 8 bits lie in unsigned typed arrays. */
export type DType = (typeof dtypes)[number];

const bytesOf: Record<DType, number> = {
  float32: 4,
  float64: 8,
  float16: 2,
  bfloat16: 2,
  int8: 1,
  int16: 2,
  int32: 4,
  int64: 8,
  uint8: 1,
  uint16: 2,
  uint32: 4,
  uint64: 8,
  bool: 1,
  float8_e4m3fn: 1,
  float8_e5m2: 1,
};

/** Returns the number of bytes of one element. */
export function byteSize(dtype: DType): number {
  return bytesOf[dtype];
}
