// Converts numbers to the bits of 16-bit floats, for which Node 20 has no arrays.

/** Returns the bits of a float16. Throws a RangeError unless `value` is zero or exactly a normal number of float16. */
export function float16Bits(value: number): number {
  if (value === 0) return 0;
  const sign = value < 0 ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  const exponent = Math.floor(Math.log2(magnitude));
  const fraction = (magnitude / 2 ** exponent - 1) * 1024;
  if (exponent < -14 || exponent > 15 || !Number.isInteger(fraction)) {
    throw new RangeError(`float16: ${value} is not exact`);
  }
  return sign | ((exponent + 15) << 10) | fraction;
}

export function float16Value(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

const scratch = new DataView(new ArrayBuffer(4));

/** Returns the bits of a bfloat16, the upper half of a float32. Throws a RangeError if `value` is not exactly one. */
export function bfloat16Bits(value: number): number {
  scratch.setFloat32(0, value);
  if (scratch.getUint16(2) !== 0 || scratch.getFloat32(0) !== value) {
    throw new RangeError(`bfloat16: ${value} is not exact`);
  }
  return scratch.getUint16(0);
}

export function bfloat16Value(bits: number): number {
  scratch.setUint16(0, bits);
  scratch.setUint16(2, 0);
  return scratch.getFloat32(0);
}
