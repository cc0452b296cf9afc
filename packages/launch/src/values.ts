// The texts of the flags that were given, and how they become numbers and switches.

import { badArgument } from './errors.ts';

/** Flag without dashes to its text. */
export type Values = ReadonlyMap<string, string>;

export function wholeNumber(
  values: Values,
  name: string,
  byDefault: string,
  max: number,
  expected?: string,
): number {
  const text = values.get(name) ?? byDefault;
  const number = Number(text);
  if (!/^\d+$/.test(text) || number > max) {
    throw badArgument('ringwise run', `--${name}`, expected ?? `a whole number from 0 to ${max}`, text);
  }
  return number;
}

export function isSwitchedOn(values: Values, name: string): boolean {
  return ['1', 'true'].includes((values.get(name) ?? '').toLowerCase());
}
