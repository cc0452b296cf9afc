// Decides how Node.js runs a user's file: .js as it is; .ts with Node's own type stripping if this version
// has it and supports `using`, which TypeScript files may contain and Node before 24 lacks; otherwise with
// tsx, or, if tsx is not installed, with type stripping alone. .jsx and .tsx always need tsx. A compiled file that
// names a source map runs with it, so that stacks show the lines that the user wrote.

import { readdirSync, readFileSync, type Stats, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Script } from 'node:vm';
import { noTypeScript, scriptIsFolder, scriptNotFound, scriptOutOfReach } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { scriptFile } from './flag-values.ts';

/**
 * Returns what is at a path, or undefined if nothing is. Throws ERR_LAUNCH_SCRIPT if the system does not say, such as
 * for a file in a folder of another user.
 */
export function statOf(verb: string, path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (cause) {
    throw scriptOutOfReach(verb, path, cause);
  }
}

/** Throws if the file does not exist or is a folder. */
export function scriptExists(verb: string, file: string): void {
  const found = statOf(verb, file);
  if (found?.isDirectory()) throw scriptIsFolder(verb, file, mainScript(file));
  if (!found?.isFile()) throw scriptNotFound(verb, file, similarScript(file));
}

/** Returns the script in a folder that the user probably means, or undefined. */
function mainScript(folder: string): string | undefined {
  const scripts = scriptsIn(folder);
  const name = scripts.find((each) => /^(train|main|index)\./.test(each)) ?? scripts[0];
  return name && join(folder, name);
}

/** Returns a script of the same folder with a similar name, such as train.mjs for train. */
function similarScript(file: string): string | undefined {
  const name = nearest(basename(file), scriptsIn(dirname(file)));
  return name && join(dirname(file), name);
}

function scriptsIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => scriptFile.test(name) && !name.endsWith('.d.ts'));
  } catch {
    return [];
  }
}

/** Returns the Node.js flags that `file` (absolute) needs. Throws if it does not exist or cannot be run. */
export function execArgvFor(verb: string, file: string): string[] {
  const loader = loaderFor(verb, file, 'tsx');
  if (loader !== null) return ['--import', loader];
  return hasSourceMap(file) ? ['--enable-source-maps'] : [];
}

/**
 * Returns whether `file` names a source map. Without one, a rank starts without the flag: Node.js 20 then reads the
 * maps of all modules that the rank imports, ours too, which takes longer than to compile these modules.
 */
function hasSourceMap(file: string): boolean {
  try {
    return readFileSync(file).includes('//# sourceMappingURL=');
  } catch {
    return false; // the ranks say why it cannot be read
  }
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
      // Not installed in that folder.
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
