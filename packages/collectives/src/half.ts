// float16 and bfloat16 as bit patterns. Conversion to them rounds to nearest, ties to even, as hardware does; NaN
// stays NaN and what is too large becomes infinity.
const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

export function fromBfloat16(half: number): number {
  bits[0] = half << 16;
  return float[0] as number;
}

/** Rounds `value` to float32 first. */
export function toBfloat16(value: number): number {
  float[0] = value;
  const word = bits[0] as number;
  if ((word & 0x7fffffff) > 0x7f800000) return (word >>> 16) | 0x40; // NaN: keep it one after the cut
  return (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
}

export function fromFloat16(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >>> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Rounds `value` to float32 first. */
export function toFloat16(value: number): number {
  float[0] = value;
  const word = bits[0] as number;
  const sign = (word >>> 16) & 0x8000;
  const magnitude = word & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00; // NaN
  if (magnitude >= 0x47800000) return sign | 0x7c00; // 65536 and above
  if (magnitude < 0x38800000) return sign | roundToEven(Math.abs(float[0] as number) * 2 ** 24); // subnormal
  // Rebias the exponent by 112 and cut 13 bits; a carry runs into the exponent, and from 65520 on into infinity.
  return sign | ((magnitude - (112 << 23) + 0xfff + ((magnitude >>> 13) & 1)) >>> 13);
}

function roundToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
