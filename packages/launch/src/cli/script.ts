// Decides how Node.js runs a user's file: .js as it is; .ts with Node's own type stripping if this version
// has it and supports `using`, which TypeScript files may contain and Node before 24 lacks; otherwise with
// tsx, or, if tsx is not installed, with type stripping alone. .jsx and .tsx always need tsx.

import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Script } from 'node:vm';
import { noTypeScript, scriptNotFound } from '../errors.ts';

/** Throws if the file does not exist. */
export function scriptExists(verb: string, file: string): void {
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) throw scriptNotFound(verb, file);
}

/** Returns the Node.js flags that `file` (absolute) needs. Throws if it does not exist or cannot be run. */
export function execArgvFor(verb: string, file: string): string[] {
  const loader = loaderFor(verb, file, 'tsx');
  return loader === null ? [] : ['--import', loader];
}

/** Returns the modules whose register() a thread must call, in order, before it can import `file`. */
export function registrarsFor(verb: string, file: string): readonly string[] {
  const cjs = loaderFor(verb, file, 'tsx/cjs/api');
  if (cjs === null) return [];
  // require() resolves to the CommonJS version, which cannot register a loader for ES modules.
  return [cjs, loaderFor(verb, file, 'tsx/esm/api')!.replace(/\.cjs$/, '.mjs')];
}

/**
 * Returns the URL of `module` of tsx; null if Node.js runs `file` by itself. Throws if the file does not exist or
 * cannot be run.
 */
function loaderFor(verb: string, file: string, module: string): string | null {
  scriptExists(verb, file);
  const isJsx = /\.[jt]sx$/.test(file);
  if (!isJsx && (!/\.[cm]?ts$/.test(file) || (stripsTypes() && knowsUsing()))) return null;
  // Prefers the tsx that the script's project has installed, because its version is the user's choice.
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
