// Computes sums in integers of any size: the exact sum, and the reproducible sum by the definition at the top of
// src/reproducible/grid.ts.
import {
  fromBfloat16,
  fromFloat16,
  toBfloat16,
  toFloat16,
} from '../../src/backends/arithmetic/narrow-floats.ts';
import type { SummableDType } from '../../src/reproducible/grid.ts';

interface Format {
  /** Number of bits of a significand, with the hidden bit. */
  readonly precision: number;
  /** Exponent of the smallest normal number; the next field is that of the largest. */
  readonly least: number;
  readonly most: number;
}
export const formats: Readonly<Record<SummableDType, Format>> = {
  float32: { precision: 24, least: -126, most: 127 },
  float64: { precision: 53, least: -1022, most: 1023 },
  float16: { precision: 11, least: -14, most: 15 },
  bfloat16: { precision: 8, least: -126, most: 127 },
};

/** Numbers here are bigint multiples of 2^-point. */
const point = 1200;

/** Returns a finite number × 2^point. */
export function exactly(value: number): bigint {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const exponent = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & ((1n << 52n) - 1n);
  const significand = exponent === 0 ? fraction : fraction | (1n << 52n);
  const magnitude = significand << BigInt(Math.max(exponent, 1) - 1075 + point);
  return bits >> 63n ? -magnitude : magnitude;
}

/** Returns the multiple of 2^power nearest to `value`, ties to even. Both are in units of 2^-point. */
function rounded(value: bigint, power: number): bigint {
  if (power <= 0) return value;
  const step = 1n << BigInt(power);
  const down = (value >> BigInt(power)) << BigInt(power);
  const twice = 2n * (value - down);
  const isUp = twice > step || (twice === step && (down / step) % 2n !== 0n);
  return isUp ? down + step : down;
}

/** Returns the largest e with 2^e not above the number, which is given × 2^point. */
function exponentOf(value: bigint): number {
  return (value < 0n ? -value : value).toString(2).length - 1 - point;
}

/** Returns the number of `dtype` that is nearest to `value`, and the distance of the dtype's numbers there. */
export function nearest(value: bigint, dtype: SummableDType): { value: number; ulp: bigint } {
  const { precision, least, most } = formats[dtype];
  const power = Math.max(exponentOf(value), least) - precision + 1 + point;
  const whole = rounded(value, power);
  if (value !== 0n && exponentOf(whole) > most)
    return { value: value < 0n ? -Infinity : Infinity, ulp: 1n << BigInt(power) };
  // Both factors are exact: the first has at most 53 bits.
  const shift = BigInt(power);
  const half = (power - point) >> 1;
  return { value: Number(whole >> shift) * 2 ** half * 2 ** (power - point - half), ulp: 1n << shift };
}

/** Returns stepBits of a dtype: the steps of the grid are 2^(e - stepBits); e is the exponent of the largest addend. */
export function stepBits(dtype: SummableDType): number {
  return dtype === 'float64' ? 83 : 42;
}

/** Rounds the addends of one element to their grid, adds them, and rounds the sum once. All addends are finite. */
export function onGrid(addends: readonly number[], dtype: SummableDType): number {
  const { least } = dtype === 'float64' ? formats.float64 : formats.float32;
  const values = addends.map(exactly);
  const largest = Math.max(...values.map((value) => (value === 0n ? -Infinity : exponentOf(value))));
  if (largest === -Infinity) return addends.length > 0 && addends.every((x) => Object.is(x, -0)) ? -0 : 0;
  const power = Math.max(largest, least) - stepBits(dtype) + point;
  return nearest(
    values.reduce((sum, value) => sum + rounded(value, power), 0n),
    dtype,
  ).value;
}

/** Converts numbers to the nearest elements of each dtype, as bits where the array type needs them. */
export const encode: Readonly<Record<SummableDType, (value: number) => number>> = {
  float32: Math.fround,
  float64: (value) => value,
  float16: toFloat16,
  bfloat16: toBfloat16,
};
export const decode: Readonly<Record<SummableDType, (element: number) => number>> = {
  float32: (element) => element,
  float64: (element) => element,
  float16: fromFloat16,
  bfloat16: fromBfloat16,
};
