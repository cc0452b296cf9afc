// Sums of floating-point numbers that do not depend on the order of the additions: J. Demmel and H. D. Nguyen, "Fast
// Reproducible Floating-Point Summation" (ARITH 2013), with integers for the bins, and a grid for every element.
//
// The addends of one element are rounded to a common grid, which only their largest exponent e decides, so that each
// is an integer; integers are added exactly, in any order; and the sum is rounded once. The grid has steps of
// 2^(e - 42): an addend has at most 43 bits then, and 2^20 of them fit an int64. float64 has steps of 2^(e - 83), and
// a second word for the lower 42 bits. An addend loses half a step at most; one of float16 loses nothing.
//
// An exponent is the biased one of float32 (of float64), and subnormals have that of the smallest normal numbers.
// Two values are no exponents: 0, nothing but zeros, where the word counts those with a sign; and the largest, where
// it counts infinities and NaN.

import type { DType } from '../dtype.ts';
import type { ArrayOf } from '../group/buffer.ts';

export const summableDtypes = ['float32', 'float64', 'float16', 'bfloat16'] as const;
export type SummableDType = (typeof summableDtypes)[number];

/** Addends of one element, over all ranks. */
export const maxAddends = 2 ** 20;

/** By element: the largest exponent so far. */
export type Exponents = Uint8Array | Uint16Array;

export function exponentDtype(dtype: DType): 'uint8' | 'uint16' {
  return dtype === 'float64' ? 'uint16' : 'uint8';
}

/** Words of a block of `count` elements: first all upper ones, then those of float64's lower halves. */
export function wordsOf(dtype: DType, count: number): number {
  return dtype === 'float64' ? 2 * count : count;
}

/** The arithmetic of one rank. The views of one call have equal lengths, and lie in host memory. */
export interface GridKernels {
  /** Raises `exponents` to those of `input`. */
  readonly raise: (dtype: SummableDType, input: ArrayOf<SummableDType>, exponents: Exponents) => void;
  /** Adds `input`, rounded to the grid of `exponents`, to `words`. */
  readonly add: (
    dtype: SummableDType,
    input: ArrayOf<SummableDType>,
    exponents: Exponents,
    words: BigInt64Array,
  ) => void;
  /** Rounds the sums of `addends` addends, divided by `divisor` in float64, to `output`. */
  readonly finish: (
    dtype: SummableDType,
    words: BigInt64Array,
    exponents: Exponents,
    addends: number,
    divisor: number,
    output: ArrayOf<SummableDType>,
  ) => void;
}
