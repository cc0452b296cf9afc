// Checks of the values of options and arguments, for the tables of options.ts.

import { bufferSymbol } from '../core/protocol.ts';
import { badOption, shown } from '../errors.ts';

/** `fits` tells whether a value is accepted; `expected` describes accepted values, as part of a sentence. */
export interface Check {
  readonly expected: string;
  readonly fits: (value: unknown) => boolean;
  /** Advice for the error, a sentence. */
  readonly next?: string;
}

/** Throws ERR_TENSOR_ARGUMENT if `value` does not fit. `what` names the argument, with its function. */
export function checkValue(what: string, value: unknown, { expected, fits, next }: Check): void {
  if (!fits(value)) throw badOption(what, expected, shown(value), next);
}

export const isTensor = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && bufferSymbol in value;

const isNumber = (value: unknown): value is number => typeof value === 'number';

/** Accepts any value, because the value is checked where it is used. */
export const anything: Check = { expected: 'any value', fits: () => true };
/** Accepts any possible stateDict(); its members are checked where they are used. */
const anyState: Check = {
  expected: 'a state, as stateDict() or state() returns',
  fits: (value) => typeof value === 'object' && value !== null && !(value instanceof Promise),
};
/** Throws ERR_TENSOR_ARGUMENT unless `state` is an object. `verb` is the call that loads it. */
export const checkState = (verb: string, state: unknown): void =>
  checkValue(`${verb}: state`, state, anyState);
export const flag: Check = { expected: 'true or false', fits: (value) => typeof value === 'boolean' };
/** Accepts NaN and infinities, too. */
export const anyNumber: Check = { expected: 'a number', fits: isNumber };
/** Accepts infinities, but not NaN. */
export const aNumber: Check = {
  expected: 'a number',
  fits: (value) => isNumber(value) && !Number.isNaN(value),
};
export const finite: Check = { expected: 'a finite number', fits: Number.isFinite };
export const nonNegative: Check = {
  expected: 'a number ≥ 0',
  fits: (value) => isNumber(value) && value >= 0 && value < Infinity,
};
export const positive: Check = {
  expected: 'a number > 0',
  fits: (value) => isNumber(value) && value > 0 && value < Infinity,
};
export const share: Check = {
  expected: 'a number from 0 to 1',
  fits: (value) => isNumber(value) && value >= 0 && value <= 1,
};
/** Accepts the share of a running mean that is kept in each step. */
export const decayRate: Check = {
  expected: 'a number ≥ 0 and < 1',
  fits: (value) => isNumber(value) && value >= 0 && value < 1,
};
export const probability: Check = { ...share, expected: 'a probability from 0 to 1' };
export const integer: Check = { expected: 'an integer', fits: Number.isSafeInteger };
export const nonNegativeInteger: Check = {
  expected: 'an integer ≥ 0',
  fits: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
};
export const atLeastOne: Check = {
  expected: 'an integer ≥ 1',
  fits: (value) => Number.isSafeInteger(value) && (value as number) >= 1,
};
export const aTensor: Check = { expected: 'a tensor', fits: isTensor };
export const aTensorList: Check = {
  expected: 'a list of tensors',
  fits: (value) => Array.isArray(value) && value.every(isTensor),
};
export const aTypedArray: Check = {
  expected: 'a typed array',
  fits: (value) => ArrayBuffer.isView(value) && !(value instanceof DataView),
};
export const tensorOrNull: Check = {
  expected: 'a tensor or null',
  fits: (value) => value === null || isTensor(value),
};
export const aFunction: Check = { expected: 'a function', fits: (value) => typeof value === 'function' };
export const aGenerator: Check = {
  expected: 'a Generator, such as generator(seed)',
  fits: (value) => typeof (value as { readonly take?: unknown } | null)?.take === 'function',
};

/** Returns a check that accepts these names. */
export const oneOf = (...names: readonly string[]): Check => ({
  expected: names
    .map((name) => `'${name}'`)
    .join(', ')
    .replace(/, ([^,]*)$/, ' or $1'),
  fits: (value) => names.includes(value as string),
});
