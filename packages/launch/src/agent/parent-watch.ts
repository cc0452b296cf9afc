// How a rank that is node ends when its launcher is killed, where the kernel does not see to it: see parent-death.ts.

/** Names the launcher's pid in the environment of a rank that must watch it. */
export const WATCHED_PARENT = 'RINGWISE_WATCHED_PARENT';

const everyMs = 200;

/** Kills this process when its parent is another one than `pid`. A thread looks, since the main thread may be busy. */
export function watchParent(pid: number): void {
  // Loaded only now: most ranks need no thread.
  const { Worker } = process.getBuiltinModule('node:worker_threads');
  const look = `setInterval(() => {
    if (process.ppid !== ${pid}) process.kill(process.pid, 'SIGKILL');
  }, ${everyMs});`;
  const worker = new Worker(look, { eval: true, execArgv: [], name: 'parent watch' });
  worker.on('error', () => {}); // without memory for a thread, the rank only lacks this protection
  worker.unref();
}
