// Ends the ranks when this process dies without a chance to do so itself (SIGKILL, out of memory). A shell waits
// on a pipe whose other end only this process holds. When the kernel closes that end, read fails, and the shell
// kills the process groups on its list. So nothing is needed inside a rank: one that never returns to its event
// loop dies as well, and so do the processes that it started. The shell costs 1 MB and 3 ms. It sits in its own
// session, so that a terminal's Ctrl-C or hang-up does not reach it before its work is done.

import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { noShell } from './errors.ts';

const watch = `
while read -r verb group <&3; do
  case $verb in
    add) groups="$groups $group" ;;
    remove)
      kept=
      for g in $groups; do [ "$g" = "$group" ] || kept="$kept $g"; done
      groups=$kept ;;
  esac
done
for g in $groups; do kill -9 "-$g"; done
[ -z "$1" ] || rm -rf -- "$1"`;

export interface LifeLine {
  /** From now on the process group `pid` dies with this process. */
  readonly add: (pid: number) => void;
  /** The group is gone; its number may soon belong to somebody else. */
  readonly remove: (pid: number) => void;
  /** Lets the shell end. */
  readonly close: () => void;
}

/**
 * Starts the shell; rejects with ERR_LAUNCH_NO_SHELL if there is none. At the end, also at that of this process, it
 * removes the folder `temporary`.
 */
export async function openLifeLine(temporary = ''): Promise<LifeLine> {
  const shell = spawn('/bin/sh', ['-c', watch, 'sh', temporary], {
    cwd: '/',
    env: {},
    detached: true,
    // Not stdin: bash reads the user's start-up files when that is a socket, as node's pipes are.
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    shell.once('spawn', resolve);
    shell.once('error', (cause) => reject(noShell(cause)));
  });
  const line = shell.stdio[3] as Socket;
  // If somebody kills the shell, the ranks only lose this protection.
  line.on('error', () => {});
  line.unref();
  shell.unref();
  return {
    add: (pid) => void line.write(`add ${pid}\n`),
    remove: (pid) => void line.write(`remove ${pid}\n`),
    close: () => void line.end(),
  };
}
