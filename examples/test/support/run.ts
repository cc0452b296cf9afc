// Runs a program to its end. Kills a program that does not end within 240 s; the ranks of a launcher die with it.
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** Paths of the scripts that `npx ringwise` and `npx tsx` run. */
export const ringwise = path('../../../packages/ringwise/bin/ringwise.js');
export const tsx = createRequire(import.meta.url).resolve('tsx/cli');

export const example = (name: string): string => path(`../../${name}`);

export interface Ended {
  readonly exitCode: number | string | null | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `node` with these arguments. `env`, if given, replaces this process's environment variables. */
export function run(argv: readonly string[], cwd?: string, env?: Record<string, string>): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { cwd, env, timeout: 240_000, killSignal: 'SIGKILL' } as const;
    execFile(process.execPath, argv, options, (error, stdout, stderr) => {
      resolve({ exitCode: error ? error.code : 0, stdout, stderr });
    });
  });
}
