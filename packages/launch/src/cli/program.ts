// The program that `ringwise run` starts for each rank: a file with its interpreter, or any program.

import { accessSync, constants, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { programAsScript, programIsFolder, programNotExecutable, programNotFound } from '../errors.ts';
import { builtFile } from '../package-files.ts';
import { execArgvFor, scriptExists, statOf } from './script.ts';

export interface Program {
  /** The program, followed by its arguments up to `args`. */
  readonly command: readonly string[];
  readonly args: readonly string[];
  /** Whether the rank is Node.js, which reports the error that ends it through a pipe. */
  readonly isNode: boolean;
  /** Whether the ranks may use torch's store client, which cannot prove a secret. */
  readonly isPython?: boolean;
  /** Variables of the rank. The launcher's own ones override them; OMP_NUM_THREADS is added if absent. */
  readonly env: NodeJS.ProcessEnv;
}

const preload = builtFile('rank.js').href;

/** Returns the program that runs `file` in Node.js and reports the error that ends it. */
export function nodeProgram(
  execArgv: readonly string[],
  file: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Program {
  const command = [process.execPath, '--import', preload, ...execArgv, file];
  return { command, args, isNode: true, env };
}

/**
 * Returns the program for a script. PYTHON_EXEC selects another Python, as in torchrun. Throws
 * ERR_LAUNCH_SCRIPT if there is no such file or program.
 */
export function programOf(
  verb: string,
  script: string,
  isProgram: boolean,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Program {
  if (isProgram) {
    const file = findProgram(script, env);
    if (file === null) throw noProgram(verb, script);
    const isPython = /^(python|pypy)[\d.]*$|\.py$/.test(basename(file));
    return { command: [file], args, isNode: false, isPython, env };
  }
  const file = resolve(script);
  if (file.endsWith('.py')) {
    scriptExists(verb, file);
    return { command: [env.PYTHON_EXEC || python(), '-u', file], args, isNode: false, isPython: true, env };
  }
  const isName = /^[\w-]+$/.test(script) && statOf(verb, file) === undefined;
  if (isName && findProgram(script, env) !== null) throw programAsScript(verb, script);
  return nodeProgram(execArgvFor(verb, file), file, args, env);
}

function noProgram(verb: string, name: string): Error {
  const found = name.includes('/') ? statOf(verb, name) : undefined;
  if (found?.isDirectory()) return programIsFolder(verb, name);
  return found ? programNotExecutable(verb, name) : programNotFound(verb, name);
}

const isWindows = () => process.platform === 'win32';
/** Python's installer for Windows has no python3. */
const python = () => (isWindows() ? 'python' : 'python3');

/**
 * Looks up a program in PATH; null if there is none. Done here instead of in each rank, so that a wrong name
 * starts nothing.
 */
export function findProgram(name: string, env: NodeJS.ProcessEnv): string | null {
  const isFile = name.includes('/') || (isWindows() && name.includes('\\'));
  // Windows calls the variable Path, and a copy of process.env tells upper case from lower case.
  const path = env.PATH ?? (isWindows() ? env.Path : undefined) ?? '';
  const folders = isFile ? [''] : path.split(isWindows() ? ';' : ':');
  const names = isWindows() ? [name, `${name}.exe`, `${name}.com`] : [name];
  const candidates = folders.flatMap((folder) =>
    names.map((each) => (folder ? join(folder, each) : resolve(each))),
  );
  return candidates.find(isExecutable) ?? null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
