// Floating-point sums that do not depend on the order of the additions: J. Demmel and H. D. Nguyen, "Fast
// Reproducible Floating-Point Summation" (ARITH 2013), with integers as bins and one grid for every element.
//
// The addends of one element are rounded to a common grid that depends only on their largest exponent e, so
// that each addend is an integer. Integers are added exactly, in any order, and the sum is rounded once. The
// grid has steps of 2^(e - 42): an addend then has at most 43 bits, and 2^20 addends fit into an int64.
// float64 has steps of 2^(e - 83), with a second word for the lower 42 bits. An addend loses at most half a
// step; a float16 addend loses nothing.
//
// An exponent is the biased exponent of float32 (of float64); subnormals have that of the smallest normal
// number. Two values have a special meaning: 0 means that all addends are zeros, and the word counts the
// negative ones; the largest value means that there are infinities or NaN, and the word counts them.

import type { DType } from '../dtype.ts';
import type { ArrayOf } from '../group/buffer.ts';

export const summableDtypes = ['float32', 'float64', 'float16', 'bfloat16'] as const;
export type SummableDType = (typeof summableDtypes)[number];

/** Maximum number of addends of one element over all ranks. */
export const maxAddends = 2 ** 20;

/** The largest exponent so far, by element. */
export type Exponents = Uint8Array | Uint16Array;

export function exponentDtype(dtype: DType): 'uint8' | 'uint16' {
  return dtype === 'float64' ? 'uint16' : 'uint8';
}

/** Number of words for `count` elements: all upper words, and for float64 then all lower words. */
export function wordsOf(dtype: DType, count: number): number {
  return dtype === 'float64' ? 2 * count : count;
}

/**
 * The arithmetic of one rank, on host memory. `input`, `output` and `exponents` of one call have equal lengths;
 * `words` has at least wordsOf() that length, of which the first ones are used.
 */
export interface GridKernels {
  /** Raises `exponents` to the exponents of `input`, element by element. */
  readonly raise: (dtype: SummableDType, input: ArrayOf<SummableDType>, exponents: Exponents) => void;
  /** Rounds `input` to the grid of `exponents` and adds it to `words`. */
  readonly add: (
    dtype: SummableDType,
    input: ArrayOf<SummableDType>,
    exponents: Exponents,
    words: BigInt64Array,
  ) => void;
  /** Divides the sums of `addends` addends by `divisor` in float64 and rounds the result to `output`. */
  readonly finish: (
    dtype: SummableDType,
    words: BigInt64Array,
    exponents: Exponents,
    addends: number,
    divisor: number,
    output: ArrayOf<SummableDType>,
  ) => void;
}
