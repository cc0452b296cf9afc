// Checks the documentation: links and anchors, `ts` blocks of all pages, and the column "ringwise" of
// docs/from-pytorch.md, whose expressions have to compile and whose flags and variables have to exist. Checks also that
// every export of the packages has a docstring, that docs/environment.md has all variables, and that docs/errors.md or
// a README has all error codes. Needs the built declarations of the packages.
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { commandFault } from '../docs/commands.mjs';
import { compileFaults } from '../docs/compile.mjs';
import { documentedEntryPoints, undocumentedFaults } from '../docs/documented.mjs';
import { errorCodeFaults } from '../docs/error-codes.mjs';
import { exportTable } from '../docs/exports.mjs';
import { linkFaults } from '../docs/links.mjs';
import { blocksOf, exampleBlocks, pagePaths, readPage, spansOfColumn } from '../docs/pages.mjs';
import { variableFaults } from '../docs/variables.mjs';
import { sources } from './sources.mjs';

/**
 * Returns the faults of pages, and of the examples in doc comments, one line each. `pages` and `examples` have the
 * texts of pages and of sources by their paths.
 */
export function docsFaults(pages, examples = new Map()) {
  const faults = [];
  const pieces = [];
  for (const [path, text] of pages) {
    faults.push(...linkFaults(path, text));
    for (const { language, line, given, text: code } of blocksOf(text)) {
      if (language === 'ts') pieces.push({ path, line, given, code });
    }
    if (path.endsWith('docs/environment.md')) faults.push(...variableFaults(path, text));
    if (!path.endsWith('from-pytorch.md')) continue;
    for (const { code, line } of spansOfColumn(text, 'ringwise')) {
      const fault = commandFault(code);
      if (fault === undefined) pieces.push({ path, line, code, isSpan: true });
      else if (fault !== null) faults.push(`${path}:${line} ${fault}`);
    }
  }
  for (const [path, text] of examples) {
    for (const { line, text: code } of exampleBlocks(text)) pieces.push({ path, line, code });
  }
  if (pieces.length > 0) faults.push(...compileFaults(pieces, exportTable()));
  return faults;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const pages = new Map(pagePaths().map((path) => [path, readPage(path)]));
  const files = sources('packages/*/src/*.ts').filter((path) => existsSync(path));
  const examples = new Map(files.map((path) => [path, readPage(path)]));
  for (const fault of [
    ...docsFaults(pages, examples),
    ...undocumentedFaults(documentedEntryPoints()),
    ...errorCodeFaults(),
  ]) {
    console.error(`check-docs: ${fault}`);
    process.exitCode = 1;
  }
}
