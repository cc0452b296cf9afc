// Converts numbers to and from the bits of float16 (IEEE 754 binary16) and bfloat16. A number is first rounded to
// float32 and then to 16 bits, both times to nearest even. So the result is the nearest one for float32 values; for
// other numbers it may be off by one unit in the last place.

const floats = new Float32Array(1);
const words = new Uint32Array(floats.buffer);

/** Returns the bits of `value`, rounded to float32. */
function bitsOf(value: number): number {
  floats[0] = value;
  return words[0]!;
}

function fromBits(bits: number): number {
  words[0] = bits;
  return floats[0]!;
}

/** Converts the 16 bits of a bfloat16 to a number, exactly. */
export const fromBfloat16 = (bits: number): number => fromBits(bits << 16);

/** Converts a number to the 16 bits of a bfloat16, rounded to nearest even. */
export function toBfloat16(value: number): number {
  const bits = bitsOf(value);
  if (Number.isNaN(value)) return (bits >>> 16) | 0x40;
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

/** Converts the 16 bits of a float16 to a number, exactly. */
export function fromFloat16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Converts a number to the 16 bits of a float16, rounded to nearest even. */
export function toFloat16(value: number): number {
  if (Number.isNaN(value)) return 0x7e00;
  const bits = bitsOf(value);
  const sign = (bits >>> 16) & 0x8000;
  const size = bits & 0x7fffffff;
  if (size >= 0x477ff000) return sign | 0x7c00; // 65520 and above round to Infinity
  // Subnormal results. From 0.5 on, float32 values are 2^-24 apart, as subnormal float16 values are, so bitsOf()
  // rounds the sum to one of these.
  if (size < 0x38800000) return sign | (bitsOf(fromBits(size) + 0.5) - 0x3f000000);
  const rounded = size + 0xfff + ((size >>> 13) & 1);
  return sign | ((rounded - 0x38000000) >>> 13);
}
