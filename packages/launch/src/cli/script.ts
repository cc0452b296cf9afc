// How node runs a user's file: .js as it is, .ts by node's own type stripping where it has that and knows `using`, which
// TypeScript has and Node before 24 has not; else by tsx.

import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Script } from 'node:vm';
import { noTypeScript, scriptNotFound } from '../errors.ts';

/** Throws if there is no such file. */
export function scriptExists(verb: string, file: string): void {
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) throw scriptNotFound(verb, file);
}

/** The flags of node that `file` (absolute) needs; throws if there is no such file or nothing that can run it. */
export function execArgvFor(verb: string, file: string): string[] {
  const loader = loaderFor(verb, file, 'tsx');
  return loader === null ? [] : ['--import', loader];
}

/** The modules whose register() a thread must call, in order, before it can import `file`. */
export function registrarsFor(verb: string, file: string): readonly string[] {
  const cjs = loaderFor(verb, file, 'tsx/cjs/api');
  if (cjs === null) return [];
  // require() finds the CommonJS twin, which cannot register for modules.
  return [cjs, loaderFor(verb, file, 'tsx/esm/api')!.replace(/\.cjs$/, '.mjs')];
}

function loaderFor(verb: string, file: string, module: string): string | null {
  scriptExists(verb, file);
  const isJsx = /\.[jt]sx$/.test(file);
  if (!isJsx && (!/\.[cm]?ts$/.test(file) || (stripsTypes() && knowsUsing()))) return null;
  // The script's own tsx first: its version is the user's choice.
  for (const base of [file, fileURLToPath(import.meta.url)]) {
    try {
      return pathToFileURL(createRequire(base).resolve(module)).href;
    } catch {
      // Not installed there.
    }
  }
  if (!isJsx && stripsTypes()) return null;
  throw noTypeScript(file);
}

function stripsTypes(): boolean {
  return Boolean((process.features as { typescript?: unknown }).typescript);
}

function knowsUsing(): boolean {
  try {
    new Script('{ using resource = null; }');
    return true;
  } catch {
    return false;
  }
}
