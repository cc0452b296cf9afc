// Ends the ranks when this process dies without a chance to end them itself (SIGKILL, out of memory). A shell waits on
// a pipe whose other end only this process holds. When the kernel closes that end, the shell's read fails, and the
// shell kills the process groups on its list. This needs no code inside a rank, so it also ends a rank that never
// returns to its event loop, and the processes that the rank started. The shell costs 1 MB and 3 ms. It runs in its own
// session, so that a terminal's Ctrl-C or hang-up does not end it too early. If the shell is killed, another one
// replaces it; parent-death.ts covers the time in between. On Windows there is no shell; each rank has its own pipe to
// the launcher instead: launcher-line.ts.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { noShell } from '../errors.ts';
import { removeTemporary } from '../report/temporary-folder.ts';
import { diesWithParent } from './parent-death.ts';
import { hasProcessGroups } from './process-groups.ts';

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
  /** Command prefix with which a rank dies with this process even without the shell. May be empty. */
  readonly command: readonly string[];
  /** Adds the process group `pid` to those that are killed when this process dies. */
  readonly add: (pid: number) => void;
  /** Removes a group that has ended, because the system may reuse its number. */
  readonly remove: (pid: number) => void;
  /** Ends the shell. */
  readonly close: () => void;
}

/** Minimum time between two starts of the shell, in case it keeps dying. */
const restartMs = 100;

/** On systems without process groups: only removes the folder, when it is closed. */
function noShellNeeded(temporary: string): LifeLine {
  const close = () => {
    if (temporary !== '') removeTemporary(temporary);
  };
  return { command: [], add: () => {}, remove: () => {}, close };
}

/**
 * Starts the shell. Rejects with ERR_LAUNCH_NO_SHELL if there is none. The folder `temporary` is removed when
 * the life-line is closed or this process ends.
 */
export async function openLifeLine(temporary = ''): Promise<LifeLine> {
  if (!hasProcessGroups()) return noShellNeeded(temporary);
  const groups = new Set<number>();
  let isClosed = false;
  let shell = startShell(temporary);
  const started = new Promise<void>((resolve, reject) => {
    shell.once('spawn', resolve);
    shell.once('error', (cause) => reject(noShell(cause)));
  });
  const [command] = await Promise.all([diesWithParent(), started]);
  replaceWhenDead();

  /** Starts another shell when this one has ended, or could not be started. */
  function replaceWhenDead(): void {
    const startedMs = performance.now();
    const replace = () => {
      if (isClosed) return;
      try {
        shell = startShell(temporary);
      } catch {
        // Most failures to start are events, but spawn throws if there is no memory for a process.
        setTimeout(replace, restartMs).unref();
        return;
      }
      for (const pid of groups) tell(`add ${pid}`);
      replaceWhenDead();
    };
    const dead = () => {
      const sinceMs = performance.now() - startedMs;
      if (sinceMs >= restartMs) replace();
      else setTimeout(replace, restartMs - sinceMs).unref();
    };
    // Each shell emits one of the two.
    shell.once('exit', dead).once('error', dead);
  }

  function tell(line: string): void {
    lineTo(shell)?.write(`${line}\n`);
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
      lineTo(shell)?.end();
    },
  };
}

function startShell(temporary: string): ChildProcess {
  const shell = spawn('/bin/sh', ['-c', watch, 'sh', temporary], {
    cwd: '/',
    env: {},
    detached: true,
    // Not stdin: bash reads the user's start-up files if stdin is a socket, which Node's pipes are.
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const line = lineTo(shell);
  line?.on('error', () => {}); // the shell is gone
  line?.unref();
  shell.unref();
  return shell;
}

/** Returns the pipe to the shell; undefined if there were no file descriptors left for one. */
function lineTo(shell: ChildProcess): Socket | undefined {
  return (shell.stdio as ChildProcess['stdio'] | undefined)?.[3] as Socket | undefined;
}
