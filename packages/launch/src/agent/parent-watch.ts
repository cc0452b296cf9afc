// Ends a Node.js rank when its launcher is killed, on systems where the kernel cannot; see parent-death.ts.

/** Environment variable with the launcher's pid, for a rank that must watch its launcher. */
export const WATCHED_PARENT = 'RINGWISE_WATCHED_PARENT';

const everyMs = 200;

/**
 * Kills this process when its parent is no longer `pid`. A thread checks that, because the main thread may be
 * busy.
 */
export function watchParent(pid: number): void {
  // Loaded only here, because most ranks do not need a thread.
  const { Worker } = process.getBuiltinModule('node:worker_threads');
  const look = `setInterval(() => {
    if (process.ppid !== ${pid}) process.kill(process.pid, 'SIGKILL');
  }, ${everyMs});`;
  const worker = new Worker(look, { eval: true, execArgv: [], name: 'parent watch' });
  worker.on('error', () => {}); // without memory for a thread, the rank only lacks this protection
  worker.unref();
}
