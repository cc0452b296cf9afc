// What `ringwise run` starts for each rank: a file with its interpreter, or any program.

import { accessSync, constants } from 'node:fs';
import { basename, delimiter, join, resolve } from 'node:path';
import { programNotFound } from '../errors.ts';
import { builtFile } from '../package-files.ts';
import { execArgvFor, scriptExists } from './script.ts';

export interface Program {
  /** First the program that is started, then its arguments up to `args`. */
  readonly command: readonly string[];
  readonly args: readonly string[];
  /** A rank that is node reports the error that ends it, through a pipe. */
  readonly isNode: boolean;
  /** The ranks may use torch's client of the store, which cannot prove a secret. */
  readonly isPython?: boolean;
  /** Variables below the contract's own; OMP_NUM_THREADS is added if absent. */
  readonly env: NodeJS.ProcessEnv;
}

const preload = builtFile('rank.js').href;

/** node with `file`, which reports its last words. */
export function nodeProgram(
  execArgv: readonly string[],
  file: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Program {
  const command = [process.execPath, '--enable-source-maps', '--import', preload, ...execArgv, file];
  return { command, args, isNode: true, env };
}

/** Throws ERR_LAUNCH_SCRIPT if there is no such file or program. PYTHON_EXEC names another Python, as for torchrun. */
export function programOf(
  verb: string,
  script: string,
  isProgram: boolean,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Program {
  if (isProgram) {
    const file = findProgram(script, env);
    if (file === null) throw programNotFound(verb, script);
    const isPython = /^(python|pypy)[\d.]*$|\.py$/.test(basename(file));
    return { command: [file], args, isNode: false, isPython, env };
  }
  const file = resolve(script);
  if (file.endsWith('.py')) {
    scriptExists(verb, file);
    return { command: [env.PYTHON_EXEC || 'python3', '-u', file], args, isNode: false, isPython: true, env };
  }
  return nodeProgram(execArgvFor(verb, file), file, args, env);
}

/** Looked for in PATH here and not by each rank, so that a wrong name starts nothing; null if there is none. */
export function findProgram(name: string, env: NodeJS.ProcessEnv): string | null {
  const folders = name.includes('/') ? [''] : (env.PATH ?? '').split(delimiter);
  const candidates = folders.map((folder) => (folder ? join(folder, name) : resolve(name)));
  return candidates.find(isExecutable) ?? null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
