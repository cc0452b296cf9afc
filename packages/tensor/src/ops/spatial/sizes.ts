// One number, or one for each spatial dimension, as options of windows over 1, 2 or 3 dimensions have them.

import { badOption, shown } from '../../errors.ts';

/** One number for all directions, or [depth, vertical, horizontal]. */
export type Triple = number | readonly [depth: number, vertical: number, horizontal: number];

/** Returns `count` numbers. Throws unless `value` is an integer of at least `least`, or a list of `count` of them. */
export function sizesFor(
  what: string,
  value: number | readonly number[],
  count: number,
  least: number,
): readonly number[] {
  const all = typeof value === 'number' ? new Array<number>(count).fill(value) : value;
  const fits =
    Array.isArray(all) &&
    all.length === count &&
    all.every((size) => Number.isSafeInteger(size) && size >= least);
  if (!fits) {
    const list = ['', '', ', or two', ', or three'][count];
    throw badOption(what, `an integer ≥ ${least}${list}`, shown(value));
  }
  return all;
}
