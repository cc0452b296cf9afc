// The kernels of grid.ts in TypeScript. They read and write a word as two halves, because BigInt is slow, and
// assume a little-endian machine. The float64 arithmetic is exact except where a rounding is mentioned.

import { fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from '../backends/arithmetic/narrow-floats.ts';
import type { ArrayOf } from '../group/buffer.ts';
import type { GridKernels, SummableDType } from './grid.ts';

const two32 = 2 ** 32;
/** (x + shift) - shift rounds x, below 2^51, to the nearest integer, ties to even. */
const shift = 1.5 * 2 ** 52;
// Amounts that +infinity, -infinity and NaN add to the word of an element that is not finite. The word can
// count 2^20 of each.
const [onePositive, oneNegative, oneNaN] = [1, 2 ** 21, 2 ** 42];

/**
 * The formats of the exponents and words. With e as the unbiased exponent, the only or upper word counts steps of
 * 2^(e - upperBits). The lower word has `lowerBits` bits below these; 0 if there is no lower word.
 */
const narrow = { bias: 127, special: 255, upperBits: 42, lowerBits: 0 };
const wide = { bias: 1023, special: 2047, upperBits: 41, lowerBits: 42 };

export const referenceKernels: GridKernels = {
  raise: (dtype, input, exponents) => {
    const { buffer, byteOffset, byteLength } = widen(dtype, input);
    const bits = new Uint32Array(buffer, byteOffset, byteLength / 4);
    const isWide = dtype === 'float64';
    for (let i = 0; i < exponents.length; i++) {
      const upper = (isWide ? bits[2 * i + 1]! : bits[i]!) & 0x7fffffff;
      const isZero = upper === 0 && (!isWide || bits[2 * i] === 0);
      const exponent = isZero ? 0 : Math.max(1, upper >>> (isWide ? 20 : 23));
      if (exponent > exponents[i]!) exponents[i] = exponent;
    }
  },

  add: (dtype, input, exponents, words) => {
    const values = widen(dtype, input);
    const { bias, special, upperBits, lowerBits } = dtype === 'float64' ? wide : narrow;
    const halves = halvesOf(words);
    const count = exponents.length;
    for (let i = 0; i < count; i++) {
      const value = values[i]!;
      const exponent = exponents[i]!;
      if (exponent === 0) addTo(halves, i, Object.is(value, -0) ? 1 : 0);
      else if (exponent === special) addTo(halves, i, codeOf(value));
      else {
        const scaled = timesPowerOf2(value, upperBits + bias - exponent);
        const upper = scaled + shift - shift;
        addTo(halves, i, upper);
        if (lowerBits > 0) addTo(halves, count + i, (scaled - upper) * 2 ** lowerBits + shift - shift);
      }
    }
  },

  finish: (dtype, words, exponents, addends, divisor, output) => {
    const { bias, special, upperBits, lowerBits } = dtype === 'float64' ? wide : narrow;
    const halves = halvesOf(words);
    const count = exponents.length;
    const store = storeOf(dtype, output);
    for (let i = 0; i < count; i++) {
      const high = halves[2 * i + 1]!;
      const low = halves[2 * i]! >>> 0;
      const exponent = exponents[i]!;
      if (exponent === 0) store(i, low > 0 && low === addends ? -0 : 0);
      else if (exponent === special) store(i, specialOf(high, low));
      else {
        const steps = lowerBits === 0 ? toOdd(high, low) : sumOf(halves, i, count + i);
        store(i, timesPowerOf2(steps / divisor, exponent - bias - upperBits - lowerBits));
      }
    }
  },
};

function widen(dtype: SummableDType, input: ArrayOf<SummableDType>): Float32Array | Float64Array {
  if (dtype === 'float16') return Float32Array.from(input, fromFloat16);
  if (dtype === 'bfloat16') return Float32Array.from(input, fromBfloat16);
  return input as Float32Array | Float64Array;
}

function halvesOf({ buffer, byteOffset, length }: BigInt64Array): Int32Array {
  return new Int32Array(buffer, byteOffset, 2 * length);
}

/** Adds an integer to a word. Wraps at 2^64. */
function addTo(halves: Int32Array, word: number, integer: number): void {
  const upper = Math.floor(integer / two32);
  const low = (halves[2 * word]! >>> 0) + (integer - upper * two32);
  halves[2 * word] = low;
  halves[2 * word + 1] = halves[2 * word + 1]! + upper + (low >= two32 ? 1 : 0);
}

function codeOf(value: number): number {
  if (Number.isNaN(value)) return oneNaN;
  if (Number.isFinite(value)) return 0;
  return value > 0 ? onePositive : oneNegative;
}

function specialOf(high: number, low: number): number {
  const negatives = ((high & 0x3ff) << 11) | (low >>> 21);
  const positives = low & 0x1fffff;
  if (high >= 0x400 || (positives > 0 && negatives > 0)) return Number.NaN;
  return positives > 0 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
}

/**
 * Converts a word to a float64 that rounds to any shorter type as the word itself does: bits that do not fit
 * are cut off, and the last bit is set if they were not zero (rounding to odd).
 */
function toOdd(high: number, low: number): number {
  const isExact = high >= -(2 ** 20) && high < 2 ** 20;
  if (isExact || (low & 0x7ff) === 0) return high * two32 + low;
  return high * two32 + (((low & ~0x7ff) | 0x800) >>> 0);
}

/** Returns the value of an upper and a lower word, in steps of the lower one, rounded once. */
function sumOf(halves: Int32Array, upper: number, lower: number): number {
  const lowerHigh = halves[2 * lower + 1]!;
  const lowerLow = halves[2 * lower]! >>> 0;
  const rest = (lowerHigh & 0x3ff) * two32 + lowerLow; // the lower word modulo 2^42; the carry goes to the upper word:
  const low = (halves[2 * upper]! >>> 0) + (lowerHigh >> 10);
  const carry = Math.floor(low / two32);
  const high = halves[2 * upper + 1]! + carry;
  const kept = low - carry * two32;
  // Both addends are exact: the upper word without its last 11 bits, and these 11 bits with the lower word.
  return (high * 2 ** 21 + (kept >>> 11)) * 2 ** 53 + ((kept & 0x7ff) * 2 ** 42 + rest);
}

const maxPower = 600;
const powersOf2 = Float64Array.from({ length: 2 * maxPower + 1 }, (_, i) => 2 ** (i - maxPower));

/**
 * Returns value × 2^power, even if 2^power is out of float64's range. Exact unless the result is out of
 * range.
 */
function timesPowerOf2(value: number, power: number): number {
  const half = power >> 1;
  return value * powersOf2[half + maxPower]! * powersOf2[power - half + maxPower]!;
}

function storeOf(dtype: SummableDType, output: ArrayOf<SummableDType>): (i: number, value: number) => void {
  const round = { float16: toFloat16, bfloat16: toBfloat16, float32: null, float64: null }[dtype];
  return (i, value) => {
    output[i] = round === null ? value : round(roundedToOdd(value));
  };
}

const float = new Float32Array(1);
const floatBits = new Uint32Array(float.buffer);

/** Returns a float32 that rounds to a 16-bit float as `value` does. */
function roundedToOdd(value: number): number {
  float[0] = value;
  const nearest = float[0]!;
  if (Math.abs(nearest) > Math.abs(value)) floatBits[0] = floatBits[0]! - 1;
  if (nearest !== value && !Number.isNaN(value)) floatBits[0] = floatBits[0]! | 1;
  return float[0]!;
}
