// The texts of the given flags, and their conversion to numbers and switches.

import { badArgument } from '../errors.ts';
import { variableOf } from './flags.ts';

/** Text of each given flag, by its name without dashes, and how the user spelled the flag. */
export class Values {
  readonly #given = new Map<string, { readonly text: string; readonly spelling: string }>();

  /** `spelling` is "--nnodes", or "PET_NNODES" if the variable gave the text. */
  set(name: string, text: string, spelling: string): void {
    this.#given.set(name, { text, spelling });
  }

  get(name: string): string | undefined {
    return this.#given.get(name)?.text;
  }

  /** Returns the flag as the user wrote it, for errors about its value. */
  nameOf(name: string): string {
    return this.#given.get(name)?.spelling ?? `--${name}`;
  }
}

/** `shownName` replaces the flag's name in the error, if another variable gave the default. */
export function wholeNumber(
  values: Values,
  name: string,
  byDefault: string,
  max: number,
  expected?: string,
  shownName?: string,
): number {
  const text = values.get(name) ?? byDefault;
  const number = Number(text);
  if (!/^\d+$/.test(text) || number > max) {
    const shown = shownName ?? values.nameOf(name);
    throw badArgument('ringwise run', shown, expected ?? `a whole number from 0 to ${max}`, text);
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
