// What is wrong with the flags of a command, in the words of `ringwise run`.
import { unknownOption } from '../src/options/option-names.ts';

/**
 * Returns the sentence, without its full stop, for an error of util.parseArgs(). `known` are the names of the flags,
 * `renamed` maps names under which users look for one to ours.
 */
export function flagFault(
  error: Error,
  known: readonly string[],
  renamed: Readonly<Record<string, string>> = {},
): string {
  const [, flag] = /^Unknown option '(-[^']*)'/.exec(error.message) ?? [];
  // The first sentence says what is wrong; the second is advice on positional arguments.
  if (flag === undefined) return error.message.split('. ')[0]!.replace(/\.$/, '');
  const fault = unknownOption({ [flag.replace(/^-+/, '')]: true }, known, renamed);
  const [, advice, meant] = /; (did you mean|expected) '(.*)'$/.exec(fault ?? '') ?? [];
  return `unknown flag ${flag}${meant === undefined ? '' : `; ${advice} --${meant}`}`;
}
