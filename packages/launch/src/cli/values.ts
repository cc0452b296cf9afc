// The texts of the given flags, and their conversion to numbers and switches.

import { badArgument } from '../errors.ts';
import { variableOf } from './flags.ts';

/** Text of each given flag, by its name without dashes. */
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

/**
 * Returns whether a switch is on. On the command line its text is '1'; its variable may also be true, 0,
 * false or empty.
 */
export function isSwitchedOn(values: Values, name: string): boolean {
  const text = values.get(name) ?? '';
  const isOn = switchOf(text);
  if (isOn === null) throw badArgument('ringwise run', variableOf(name), '1 or 0', text);
  return isOn;
}

/** Returns true or false, or null for any other text. */
export function switchOf(text: string): boolean | null {
  if (['1', 'true'].includes(text.toLowerCase())) return true;
  return ['', '0', 'false'].includes(text.toLowerCase()) ? false : null;
}
