// Checks of arguments, made before anything is sent. Each check throws ERR_DDP_INVALID with a sentence that
// begins with its first argument.
import type { Group } from '@ringwise/collectives';
import { badOptions, invalidArgument } from './errors.ts';
import { unknownOption } from './option-names.ts';

/** The option names of a call, and the names that other libraries use for them. */
export interface OptionNames {
  readonly known: readonly string[];
  readonly renamed?: Readonly<Record<string, string>>;
}

/**
 * Returns a map from PyTorch's option names to ours, with each PyTorch name in snake_case and in camelCase.
 */
export function fromPyTorch(renamed: Readonly<Record<string, string>>): Record<string, string> {
  const camel = Object.entries(renamed).map(([name, ours]) => [camelCase(name), ours] as const);
  return { ...Object.fromEntries(camel), ...renamed };
}

export function camelCase(name: string): string {
  return name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

export function checkOptions(verb: string, options: unknown, { known, renamed }: OptionNames): void {
  const fault = unknownOption(options, known, renamed);
  if (fault !== null) throw badOptions(verb, fault);
}

export function checkGroup(verb: string, group: unknown): void {
  const { allReduce, size } = (group ?? {}) as Partial<Group>;
  if (typeof allReduce === 'function' && typeof size === 'number') return;
  throw invalidArgument(`${verb}: group`, 'a group, as init() gives one', shown(group));
}

/** Throws unless `value` is a number above 0. Infinity is allowed. */
export function checkPositive(what: string, value: unknown, expected = 'a positive number'): void {
  if (!(typeof value === 'number' && value > 0)) throw invalidArgument(what, expected, shown(value));
}

export function checkInteger(what: string, value: unknown, least: number, most = Infinity): void {
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return;
  const range = most === Infinity ? `of at least ${least}` : `from ${least} to ${most}`;
  throw invalidArgument(what, `an integer ${range}`, shown(value));
}

export function checkBoolean(what: string, value: unknown): void {
  if (typeof value !== 'boolean') throw invalidArgument(what, 'true or false', shown(value));
}

export function checkString(what: string, value: unknown): void {
  if (typeof value !== 'string') throw invalidArgument(what, 'a string', shown(value));
}

export function checkFunction(what: string, value: unknown, expected = 'a function'): void {
  if (typeof value !== 'function') throw invalidArgument(what, expected, shown(value));
}

/** Throws unless `value` is a function that can be called, which a class cannot. */
export function checkMaker(what: string, value: unknown, expected: string): void {
  checkFunction(what, value, expected);
  const { name } = value as { readonly name: string };
  if (/^class\b/.test(Function.prototype.toString.call(value)))
    throw invalidArgument(what, expected, `the class ${name || 'without a name'}`);
}

export function checkOneOf(what: string, value: unknown, allowed: readonly string[]): void {
  if (allowed.includes(value as string)) return;
  const quoted = allowed.map((each) => `'${each}'`);
  throw invalidArgument(what, `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`, shown(value));
}

/** Formats a value for an error: numbers and short texts as they are, everything else by its type. */
export function shown(value: unknown): string {
  if (value instanceof Promise) return 'a promise, which needs an await';
  if (typeof value === 'string') return value.length > 40 ? 'a long string' : `'${value}'`;
  if (typeof value === 'object' && value !== null) {
    return Array.isArray(value) ? 'an array' : 'an object';
  }
  return typeof value === 'function' ? 'a function' : String(value);
}

/** Returns the message of an error, to send it to other ranks; the text of what else was thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
