// What ends a rank when its launcher is killed and the life-line's shell with it: on Linux the kernel, which sends SIGKILL
// to a process whose parent has died, if the process asked for it. The command setpriv (package util-linux) asks, then
// becomes the rank. Elsewhere a rank that is node watches its parent itself: parent-watch.ts.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { findProgram } from '../cli/program.ts';

let prefix: Promise<readonly string[]> | undefined;

/** The words in front of a command with which it dies with this process; none where the system has no such thing. */
export function diesWithParent(): Promise<readonly string[]> {
  prefix ??= findPrefix();
  return prefix;
}

async function findPrefix(): Promise<readonly string[]> {
  const setpriv = process.platform === 'linux' ? findProgram('setpriv', process.env) : null;
  if (setpriv === null) return [];
  const command = [setpriv, '--pdeathsig', 'KILL', '--'];
  // Older ones, and BusyBox's, do not know the option.
  const isKnown = await succeeds([...command, '/bin/sh', '-c', ':']);
  return isKnown ? command : [];
}

async function succeeds([program, ...args]: readonly string[]): Promise<boolean> {
  try {
    const [exitCode] = (await once(spawn(program!, args, { stdio: 'ignore' }), 'exit')) as [number | null];
    return exitCode === 0;
  } catch {
    return false; // could not be started
  }
}
