// Conversions of floats for which JavaScript has no typed arrays (for float16 only new versions have one), as
// bit patterns: float16, bfloat16 and the two 8-bit types. Conversion to them rounds to nearest, ties to even, as
// hardware does; NaN stays NaN. Values that are too large become infinity, or the largest number in 8 bits: the
// saturating mode of the OCP specification "8-bit floating point", which CUDA's conversions use.
import type { DType } from '../../dtype.ts';

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** Converts the 16 bits of a bfloat16 to a number, exactly. */
export function fromBfloat16(half: number): number {
  bits[0] = half << 16;
  return float[0] as number;
}

/** Returns the bits of the nearest bfloat16. Rounds `value` to float32 first. */
export function toBfloat16(value: number): number {
  float[0] = value;
  const word = bits[0] as number;
  if ((word & 0x7fffffff) > 0x7f800000) return (word >>> 16) | 0x40; // NaN: keep it one after the cut
  return (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
}

/** Converts the 16 bits of a float16 to a number, exactly. */
export function fromFloat16(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >>> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Returns the bits of the nearest float16. Rounds `value` to float32 first. */
export function toFloat16(value: number): number {
  float[0] = value;
  const word = bits[0] as number;
  const sign = (word >>> 16) & 0x8000;
  const magnitude = word & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00; // NaN
  if (magnitude >= 0x47800000) return sign | 0x7c00; // 65536 and above
  if (magnitude < 0x38800000) return sign | roundToEven(Math.abs(float[0] as number) * 2 ** 24); // subnormal
  // Rebias the exponent by 112 and drop 13 bits. A carry goes into the exponent, and from 65520 on gives
  // infinity.
  return sign | ((magnitude - (112 << 23) + 0xfff + ((magnitude >>> 13) & 1)) >>> 13);
}

function roundToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}

interface Format8 {
  /** Number of bits of the fraction. */
  readonly fraction: number;
  readonly bias: number;
  /** Bits of the largest number. */
  readonly largest: number;
}

const e4m3: Format8 = { fraction: 3, bias: 7, largest: 0x7e };
const e5m2: Format8 = { fraction: 2, bias: 15, largest: 0x7b };

/** Returns the bits of the nearest 8-bit float. Rounds `value` to float32 first. */
function toFloat8(value: number, { fraction, bias, largest }: Format8): number {
  float[0] = value;
  const word = bits[0] as number;
  const sign = (word >>> 24) & 0x80;
  const magnitude = word & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7f; // NaN
  const shift = 23 - fraction;
  if (magnitude < (128 - bias) << 23) {
    return sign | roundToEven(Math.abs(float[0] as number) * 2 ** (bias + fraction - 1)); // subnormal
  }
  const half = (1 << (shift - 1)) - 1 + ((magnitude >>> shift) & 1);
  return sign | Math.min((magnitude - ((127 - bias) << 23) + half) >>> shift, largest);
}

/** Returns the number for these bits. The format has no infinity; only the largest magnitude is NaN. */
function fromE4m3(byte: number): number {
  const sign = byte & 0x80 ? -1 : 1;
  const magnitude = byte & 0x7f;
  if (magnitude === 0x7f) return Number.NaN;
  const fraction = magnitude & 7;
  if (magnitude < 8) return sign * fraction * 2 ** -9;
  return sign * (1 + fraction / 8) * 2 ** ((magnitude >>> 3) - 7);
}

/** A float of 16 or 8 bits, for which JavaScript has no typed array. */
export type NarrowFloat = Extract<DType, 'float16' | 'bfloat16' | `float8${string}`>;

interface Conversions {
  /** Returns the number for these bits. */
  readonly from: (bits: number) => number;
  /** Returns the bits of the nearest number. Rounds `value` to float32 first. */
  readonly to: (value: number) => number;
}

/** Conversions between bits and numbers by type, for programs that compute with them. */
export const narrowFloats: Readonly<Record<NarrowFloat, Conversions>> = {
  float16: { from: fromFloat16, to: toFloat16 },
  bfloat16: { from: fromBfloat16, to: toBfloat16 },
  float8_e4m3fn: { from: fromE4m3, to: (value) => toFloat8(value, e4m3) },
  float8_e5m2: { from: (byte) => fromFloat16(byte << 8), to: (value) => toFloat8(value, e5m2) },
};

/** Tells whether `dtype` is a float of 16 or 8 bits. */
export function isNarrowFloat(dtype: DType): dtype is NarrowFloat {
  return dtype in narrowFloats;
}
