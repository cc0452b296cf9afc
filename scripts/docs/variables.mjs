// Compares docs/environment.md with the environment variables that the sources read.
import { execFileSync } from 'node:child_process';
import { isVariable } from './commands.mjs';
import { spansOfColumn } from './pages.mjs';

/** How sources read a variable, as extended regular expressions, each with the files to look into. */
const reads = [
  [String.raw`\benv(\.|\[')[A-Z][A-Z0-9_]+`, ['packages/*/src/*.ts']],
  [
    String.raw`(getenv|variable)\("[A-Z][A-Z0-9_]+"`,
    ['native/base/*', 'native/coll/*', 'native/tensor/*', 'native/mpi/*'],
  ],
  [String.raw`SharedLibrary\(\{"[A-Z][A-Z0-9_]+"`, ['native/base/*', 'native/coll/*', 'native/tensor/*']],
];

/** Returns the variables that the packages and addons read, tests and @ringwise/testing left out. */
export function variablesRead() {
  const left = [':!packages/testing', ':!**/test/**', ':!**/bench/**'];
  const found = reads.flatMap(([pattern, files]) =>
    execFileSync('git', ['grep', '--no-index', '-hoE', pattern, '--', ...files, ...left], {
      encoding: 'utf8',
    })
      .split('\n')
      .map((hit) => /[A-Z][A-Z0-9_]+/.exec(hit.replace(/^env|^.*?["'.]/, ''))?.[0])
      .filter((name) => name !== undefined),
  );
  return [...new Set(found)].sort();
}

/** Returns the faults of the page: variables that it misses, and variables that no source reads. */
export function variableFaults(path, text, read = variablesRead()) {
  const spans = ['variable', 'variables'].flatMap((heading) => spansOfColumn(text, heading));
  const families = spans.filter(({ code }) => code.endsWith('_*')).map(({ code }) => code.slice(0, -1));
  const named = new Set(spans.map(({ code }) => code));
  const missing = read.filter(
    (name) => !named.has(name) && !families.some((family) => name.startsWith(family)),
  );
  return [
    ...missing.map((name) => `${path} does not describe ${name}, which a source reads`),
    ...spans
      .filter(({ code }) => !code.endsWith('_*') && !isVariable(code))
      .map(({ code, line }) => `${path}:${line} describes ${code}, which no source reads`),
  ];
}
