// Ends the ranks when this process dies without a chance to do so itself (SIGKILL, out of memory). A shell waits
// on a pipe whose other end only this process holds. When the kernel closes that end, read fails, and the shell
// kills the process groups on its list. So nothing is needed inside a rank: one that never returns to its event
// loop dies as well, and so do the processes that it started. The shell costs 1 MB and 3 ms. It sits in its own
// session, so that a terminal's Ctrl-C or hang-up does not reach it before its work is done. If somebody kills the
// shell, another one takes its place; parent-death.ts is for the moment in between.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { noShell } from '../errors.ts';
import { diesWithParent } from './parent-death.ts';

const watch = `
trap '' HUP INT QUIT TERM
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
  /** To be put in front of a rank's command: the rank dies with this process even if the shell is gone. Perhaps empty. */
  readonly command: readonly string[];
  /** From now on the process group `pid` dies with this process. */
  readonly add: (pid: number) => void;
  /** The group is gone; its number may soon belong to somebody else. */
  readonly remove: (pid: number) => void;
  /** Lets the shell end. */
  readonly close: () => void;
}

/** A shell that keeps dying is not started more often than this. */
const restartMs = 100;

/**
 * Starts the shell; rejects with ERR_LAUNCH_NO_SHELL if there is none. At the end, also at that of this process, it
 * removes the folder `temporary`.
 */
export async function openLifeLine(temporary = ''): Promise<LifeLine> {
  const groups = new Set<number>();
  let isClosed = false;
  let shell = startShell(temporary);
  const started = new Promise<void>((resolve, reject) => {
    shell.once('spawn', resolve);
    shell.once('error', (cause) => reject(noShell(cause)));
  });
  const [command] = await Promise.all([diesWithParent(), started]);
  replaceWhenDead();

  function replaceWhenDead(): void {
    const startedMs = performance.now();
    const replace = () => {
      if (isClosed) return;
      shell = startShell(temporary);
      shell.on('error', () => {});
      for (const pid of groups) tell(`add ${pid}`);
      replaceWhenDead();
    };
    shell.once('exit', () => {
      const sinceMs = performance.now() - startedMs;
      if (sinceMs >= restartMs) replace();
      else setTimeout(replace, restartMs - sinceMs).unref();
    });
  }

  function tell(line: string): void {
    (shell.stdio[3] as Socket | undefined)?.write(`${line}\n`);
  }

  return {
    command,
    add: (pid) => {
      groups.add(pid);
      tell(`add ${pid}`);
    },
    remove: (pid) => {
      groups.delete(pid);
      tell(`remove ${pid}`);
    },
    close: () => {
      isClosed = true;
      (shell.stdio[3] as Socket | undefined)?.end();
    },
  };
}

function startShell(temporary: string): ChildProcess {
  const shell = spawn('/bin/sh', ['-c', watch, 'sh', temporary], {
    cwd: '/',
    env: {},
    detached: true,
    // Not stdin: bash reads the user's start-up files when that is a socket, as node's pipes are.
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const line = shell.stdio[3] as Socket | undefined;
  line?.on('error', () => {}); // the shell is gone
  line?.unref();
  shell.unref();
  return shell;
}
