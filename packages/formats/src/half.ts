// float16 (IEEE 754 binary16) and bfloat16 as bit patterns, to and from numbers, rounded to nearest even.

const floats = new Float32Array(1);
const words = new Uint32Array(floats.buffer);

/** The bits of `value` as float32. */
function bitsOf(value: number): number {
  floats[0] = value;
  return words[0]!;
}

function fromBits(bits: number): number {
  words[0] = bits;
  return floats[0]!;
}

export const fromBfloat16 = (bits: number): number => fromBits(bits << 16);

export function toBfloat16(value: number): number {
  const bits = bitsOf(value);
  if (Number.isNaN(value)) return (bits >>> 16) | 0x40;
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

export function fromFloat16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

export function toFloat16(value: number): number {
  if (Number.isNaN(value)) return 0x7e00;
  const bits = bitsOf(value);
  const sign = (bits >>> 16) & 0x8000;
  const size = bits & 0x7fffffff;
  if (size >= 0x477ff000) return sign | 0x7c00; // rounds beyond 65504
  // Subnormal results: the addition rounds.
  if (size < 0x38800000) return sign | (bitsOf(fromBits(size) + 0.5) - 0x3f000000);
  const rounded = size + 0xfff + ((size >>> 13) & 1);
  return sign | ((rounded - 0x38000000) >>> 13);
}
