// Checks that source files have at most 600 lines, that comments have at most 120 columns, and that no line, of code or
// text, has a word that a standard term has replaced (ARCHITECTURE.md has the glossary).
import { existsSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { sources } from './sources.mjs';

const mostColumns = 120;
const mostLines = 600;

/** Retired words, as patterns for whole words, each with the term to use instead. */
const retired = [
  [/\bgreet(s|ed|ing|ings)?\b/i, 'handshake'],
  [/\bverdicts?\b/i, 'root cause'],
  [/\bnap(s|ping)?\b/i, 'backoff'],
  [/\burge[sd]?\b/i, 'requestProgress'],
  [/\bstrangers?\b/i, 'unauthenticated connection, or what it is'],
  [/\bcrowded\b/i, 'oversubscribed'],
  [/\broll[ -]?calls?\b/i, 'participation'],
  [/\bfirings?\b/i, 'hook counts'],
  [/\bguests?\b/i, 'participant'],
];

/** Files that may contain retired words: this list and its test. */
const exempt = new Set(['scripts/checks/words.mjs', 'scripts/test/unit/words.test.ts']);

const isComment = (line) => /(^\s*(\/\/|\*|\/\*))|\s\/\/ /.test(line);

/** Returns the faults in one file, one line each. */
export function faultsOf(path, text) {
  const lines = text.split('\n');
  const count = lines.length - (lines.at(-1) === '' ? 1 : 0);
  const isLong = !path.endsWith('.md') && count > mostLines;
  const faults = lines.flatMap((line, index) => {
    const at = `${path}:${index + 1}`;
    // Markdown and comments with addresses may be wider.
    const isWide =
      !path.endsWith('.md') && [...line].length > mostColumns && isComment(line) && !/https?:/.test(line);
    return [
      ...(isWide ? [`${at} has a comment of more than ${mostColumns} columns`] : []),
      ...retired.flatMap(([pattern, term]) => {
        const found = pattern.exec(line);
        return found ? [`${at} says "${found[0]}"; the term is: ${term}`] : [];
      }),
    ];
  });
  return isLong ? [`${path} has ${count} lines; the most is ${mostLines}: split it`, ...faults] : faults;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const path of sources('*.ts', '*.mjs', '*.c', '*.h', '*.cc', '*.cu', '*.cuh', '*.md')) {
    if (exempt.has(path) || path.endsWith('CHANGELOG.md') || !existsSync(path)) continue;
    for (const fault of faultsOf(path, readFileSync(path, 'utf8'))) {
      console.error(`check-words: ${fault}`);
      process.exitCode = 1;
    }
  }
}
