// Ends a rank when its launcher and the life-line's shell are both killed. On Linux the kernel sends SIGKILL
// to a process whose parent has died, if the process requested it. The command setpriv (package util-linux)
// requests it and then becomes the rank. Elsewhere a Node.js rank watches its parent itself: parent-watch.ts.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { findProgram } from '../cli/program.ts';

let prefix: Promise<readonly string[]> | undefined;

/** Resolves with the command prefix with which a rank dies with this process; empty if unsupported. */
export function diesWithParent(): Promise<readonly string[]> {
  prefix ??= findPrefix();
  return prefix;
}

async function findPrefix(): Promise<readonly string[]> {
  const setpriv = process.platform === 'linux' ? findProgram('setpriv', process.env) : null;
  if (setpriv === null) return [];
  const command = [setpriv, '--pdeathsig', 'KILL', '--'];
  // Older versions of setpriv, and BusyBox's, do not have the option.
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
