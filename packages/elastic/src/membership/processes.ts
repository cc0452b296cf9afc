// Tells whether a process on this host has ended, so that members notice a killed process even if no launcher reports
// it. Linux only: without /proc nothing is known.
import { readFileSync, statSync } from 'node:fs';

/** Cached result of ownProcess(); it does not change while the process runs. */
let own: string | null | undefined;

/**
 * Returns an identity of this process on its host: the namespace of its id, the id, and its start time. Null without
 * /proc.
 */
export function ownProcess(): string | null {
  if (own === undefined) own = findOwn();
  return own;
}

function findOwn(): string | null {
  try {
    const [, start] = read('self');
    return `${statSync('/proc/self/ns/pid').ino}/${process.pid}/${start}`;
  } catch {
    return null;
  }
}

/** Returns whether a process on this host has certainly ended. False if its state cannot be read. */
export function hasEnded(identity: string | null): boolean {
  const self = ownProcess();
  if (identity === null || self === null) return false;
  const [namespace, pid, start] = identity.split('/') as [string, string, string];
  if (namespace !== self.split('/')[0]) return false;
  try {
    const [state, since] = read(pid);
    return since !== start || state === 'Z' || state === 'X';
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ESRCH';
  }
}

/** Returns the state and the start time of a process. Its name, in brackets, may have spaces and brackets. */
function read(pid: string): [string, string] {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return [fields[0]!, fields[19]!];
}
