// Reads the options of an example. `--help` prints the comment with which the example begins; wrong options end the
// program with one sentence and exit code 2.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ParseArgsConfig, parseArgs } from 'node:util';

type Flags = NonNullable<ParseArgsConfig['options']>;
type Values<T extends Flags> = ReturnType<typeof parseArgs<{ options: T }>>['values'];

/** Prints the sentence and ends the program. */
function refuse(sentence: string): never {
  console.error(`${basename(process.argv[1] ?? '')}: ${sentence} See --help.`);
  process.exit(2);
}

/**
 * Returns the values of `flags` on the command line, and its other words, one for each of the names `wordNames`. Other
 * options and words are refused.
 */
export function readOptions<const T extends Flags>(
  url: string,
  flags: T,
  wordNames: readonly string[] = [],
): Values<T> & { words: string[] } {
  const help = { type: 'boolean', short: 'h', default: false } as const;
  try {
    const { values, positionals: words } = parseArgs({
      options: { ...flags, help } as Flags,
      allowPositionals: wordNames.length > 0,
    });
    if (!values.help) {
      if (words.length !== wordNames.length)
        refuse(`expected ${wordNames.join(' and ')}, got ${words.join(' ') || 'nothing'}.`);
      return { ...(values as Values<T>), words };
    }
  } catch (error) {
    refuse(`${(error as Error).message.split(/\.?(\s*\n|\. |$)/)[0]}.`);
  }
  // With several ranks, the first prints it. All end here.
  if ((process.env.RANK ?? '0') === '0') console.log(headOf(fileURLToPath(url)));
  process.exit();
}

/** Returns the comment at the beginning of a file, without the slashes. */
function headOf(file: string): string {
  const lines = readFileSync(file, 'utf8').split('\n');
  const end = lines.findIndex((line) => !line.startsWith('//'));
  return lines
    .slice(0, end)
    .map((line) => line.slice(3))
    .join('\n');
}

/** Returns the value of an option as a number that `fits`; otherwise refuses it. `expected` describes such numbers. */
export function numberFrom(
  option: string,
  text: string,
  expected: string,
  fits: (n: number) => boolean,
): number {
  const number = text.trim() === '' ? Number.NaN : Number(text);
  return fits(number) ? number : refuse(`${option}: expected ${expected}, got '${text}'.`);
}

/** Returns the value of an option as a whole number of at least `least`; otherwise refuses it. */
export const whole = (option: string, text: string, least = 1): number =>
  numberFrom(
    option,
    text,
    `a whole number of at least ${least}`,
    (n) => Number.isSafeInteger(n) && n >= least,
  );
