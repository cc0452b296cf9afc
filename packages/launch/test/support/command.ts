// Runs the built command on scripts in a temporary folder. Ends all processes and removes the folder after each test.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach } from 'vitest';

/** The file of the command. */
export const bin = fileURLToPath(new URL('../../bin/ringwise.js', import.meta.url));
const started: Command[] = [];
let folder: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'ringwise-launch-')));
});

afterEach(async () => {
  for (const { child, out } of started.splice(0)) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    // Ranks are still alive only if the package under test failed to end them.
    for (const pid of numbersAfter('pid', out.stdout)) if (!isGone(pid)) process.kill(pid, 'SIGKILL');
  }
  rmSync(folder, { recursive: true });
});

/** Writes a file into this test's folder and returns its path. */
export function script(name: string, source: string): string {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, source);
  return file;
}

export interface Command {
  readonly pid: number;
  readonly child: ChildProcess;
  /** The output so far. */
  readonly out: { stdout: string; stderr: string };
  readonly exitCode: Promise<number | null>;
}

/** Starts `ringwise` in this test's folder, with at most `openFiles` file descriptors if given. */
export function ringwise(
  args: readonly string[],
  env: Record<string, string> = {},
  openFiles?: number,
): Command {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(PET_|OMP_|FORCE_COLOR|NO_COLOR|_$)/.test(name),
  );
  const limit = openFiles ? ['/bin/sh', '-c', `ulimit -n ${openFiles}; exec "$@"`, 'sh'] : [];
  const [program, ...words] = [...limit, process.execPath, bin, ...args];
  const child = spawn(program!, words, {
    cwd: folder,
    env: { ...Object.fromEntries(inherited), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const out = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      out[stream] += text;
    });
  }
  const exitCode = once(child, 'close').then(([code]) => code as number | null);
  const command = { pid: child.pid!, child, out, exitCode };
  started.push(command);
  return command;
}

/** Runs `ringwise` until it ends. */
export async function finished(args: readonly string[], env?: Record<string, string>) {
  const command = ringwise(args, env);
  const exitCode = await command.exitCode;
  return { exitCode, ...command.out };
}

/** Polls until the condition holds; throws at the deadline, which a busy machine does not need. */
export async function until(what: string, holds: () => boolean, deadlineMs = 120_000): Promise<void> {
  const endMs = performance.now() + deadlineMs;
  while (!holds()) {
    if (performance.now() > endMs) throw new Error(`${what}: not within ${deadlineMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Returns the numbers that ranks printed after `word`, such as 4711 in "[0] pid 4711". */
export function numbersAfter(word: string, text: string): number[] {
  return [...text.matchAll(new RegExp(`\\b${word} (\\d+)`, 'g'))].map((match) => Number(match[1]));
}

/** Tells whether no process has this pid. A zombie, which waits to be reaped by its parent, counts as gone. */
export function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return true;
  }
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', `${pid}`], { encoding: 'utf8' });
  return stdout.trim() === '' || stdout.trim().startsWith('Z');
}
