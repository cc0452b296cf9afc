// The differences between operating systems in starting and ending ranks. On POSIX systems each rank leads a process
// group, so that a signal reaches all its processes, and a shell kills the groups if the launcher dies. Windows has
// neither: there a Node.js rank has a pipe from its launcher (the "line"), over which it receives signals, and it ends
// when the line closes. Its own children, and ranks that are not Node.js, end with their parent by the job object that
// libuv makes for every Node.js process.
import type { ChildProcess } from 'node:child_process';
import type { Writable } from 'node:stream';

/** Returns whether this system has process groups. Read at each call, as tests change process.platform. */
export function hasProcessGroups(): boolean {
  return process.platform !== 'win32';
}

/** Sends a signal to a rank and, with process groups, to all processes that it has started. Never throws. */
export type SendSignal = (signal: NodeJS.Signals) => void;

export function signalGroup(pid: number): SendSignal {
  return (signal) => {
    try {
      process.kill(-pid, signal);
    } catch {
      // The group has ended. On macOS this also happens while its last member is a zombie.
    }
  };
}

/**
 * Returns the function that signals a rank without a process group. `line` is its pipe from this process; undefined for
 * a rank that is not Node.js, which every signal ends.
 */
export function signalProcess(child: ChildProcess, line: Writable | undefined): SendSignal {
  line?.on('error', () => {}); // the rank has ended
  return (signal) => {
    if (signal === 'SIGCONT') return; // no process is stopped
    if (signal === 'SIGKILL' || line === undefined) child.kill('SIGKILL');
    else line.write(`${signal}\n`);
  };
}
