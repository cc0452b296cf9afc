// How node runs a user's file: .js as it is, .ts by node's own type stripping where it has that, else by tsx.

import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { noTypeScript, scriptNotFound } from './errors.ts';

/** Throws if there is no such file. */
export function scriptExists(verb: string, file: string): void {
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) throw scriptNotFound(verb, file);
}

/** The flags of node that `file` (absolute) needs; throws if there is no such file or nothing that can run it. */
export function execArgvFor(verb: string, file: string): string[] {
  scriptExists(verb, file);
  const stripsTypes = Boolean((process.features as { typescript?: unknown }).typescript);
  const needsTsx = /\.[jt]sx$/.test(file) || (/\.[cm]?ts$/.test(file) && !stripsTypes);
  if (!needsTsx) return [];
  // The script's own tsx first: its version is the user's choice.
  for (const base of [file, fileURLToPath(import.meta.url)]) {
    try {
      return ['--import', pathToFileURL(createRequire(base).resolve('tsx')).href];
    } catch {
      // Not installed there.
    }
  }
  throw noTypeScript(file);
}
