// Checks of arguments. Each throws ERR_ELASTIC_INVALID with a sentence that begins with its first argument.
import { badOptions, invalidArgument } from './errors.ts';
import { unknownOption } from './option-names.ts';

export function checkOptions(
  verb: string,
  options: unknown,
  known: readonly string[],
  renamed: Readonly<Record<string, string>> = {},
): void {
  const fault = unknownOption(options, known, renamed);
  if (fault !== null) throw badOptions(verb, fault);
}

export function checkInteger(what: string, value: unknown, least: number): void {
  if (Number.isSafeInteger(value) && (value as number) >= least) return;
  throw invalidArgument(what, `an integer of at least ${least}`, shown(value));
}

export function checkFunction(what: string, value: unknown, expected = 'a function'): void {
  if (typeof value !== 'function') throw invalidArgument(what, expected, shown(value));
}

/** Formats a value for an error: numbers and short texts as they are, everything else by its type. */
export function shown(value: unknown): string {
  if (value instanceof Promise) return 'a promise, which needs an await';
  if (typeof value === 'string') return value.length > 40 ? 'a long string' : `'${value}'`;
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object';
  return typeof value === 'function' ? 'a function' : String(value);
}
