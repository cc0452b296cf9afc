// Checks of positional arguments, so that a value of the wrong type does not become a silent default or a
// wrong number.

import { type DType, holds } from '../core/dtype.ts';
import { doesNotFit, notABoolean, notANumber, notAnInteger, notIntegers } from './argument-errors.ts';

/** Throws unless `value` is a number; infinities and NaN are numbers. */
export function checkNumber(op: string, name: string, value: number): void {
  if (typeof value !== 'number') throw notANumber(op, name, value);
}

/** Throws unless `value` is an integer that a number holds exactly. */
export function checkInteger(op: string, name: string, value: number): void {
  if (!Number.isSafeInteger(value)) throw notAnInteger(op, name, value);
}

/** Throws unless `value` is a boolean. An options object in its place must not count as true. */
export function checkFlag(op: string, name: string, value: boolean): void {
  if (typeof value !== 'boolean') throw notABoolean(op, name, value);
}

/** Throws unless `values` is an array. Its elements are checked where they are used. */
export function checkList(op: string, name: string, values: readonly number[]): void {
  if (!Array.isArray(values)) throw notIntegers(op, name, values);
}

/**
 * Throws if `dtype` cannot represent `value`. Integers drop the fraction, and any number can become a bool.
 */
export function checkFits(op: string, value: number, dtype: DType): void {
  if (typeof value !== 'number') throw notANumber(op, 'the value', value);
  if (!holds(dtype, value)) throw doesNotFit(op, value, dtype);
}
