// A Node.js rank's pipe to its launcher (the "line"), on systems without process groups; see process-groups.ts. The
// launcher writes the names of signals to it. When the launcher ends, even by SIGKILL, the pipe closes, and this
// process is killed. A thread reads the pipe, because the main thread may be busy.

/** Environment variable with the line's descriptor. */
export const LAUNCHER_LINE_FD = 'RINGWISE_LAUNCHER_LINE_FD';

const reader = `
const { Socket } = require('node:net');
const { parentPort, workerData } = require('node:worker_threads');
const { fd, handlers } = workerData;
const end = () => process.kill(process.pid, 'SIGKILL');
const line = new Socket({ fd, readable: true, writable: false });
let text = '';
line.setEncoding('utf8').on('error', () => {}).on('close', end).on('data', (more) => {
  const signals = (text + more).split('\\n');
  text = signals.pop();
  for (const signal of signals) {
    if (Atomics.load(handlers, 0) === 0) end();
    else parentPort.postMessage(signal);
  }
});`;

/**
 * Reads the line until this process ends. A signal calls its handlers, as process.emit does; without handlers
 * of any signal it ends this process at once, also if the main thread is busy.
 */
export function followLauncher(fd: number): void {
  // Loaded only here, because most ranks do not need a thread.
  const { Worker } = process.getBuiltinModule('node:worker_threads');
  const handlers = new Int32Array(new SharedArrayBuffer(4));
  const add = (name: string | symbol, by: number) => {
    if (typeof name === 'string' && name.startsWith('SIG')) Atomics.add(handlers, 0, by);
  };
  for (const name of process.eventNames()) add(name, process.listenerCount(name));
  const count = (by: number) => (name: string | symbol) => add(name, by);
  process.on('newListener', count(1)).on('removeListener', count(-1));
  const worker = new Worker(reader, {
    eval: true,
    execArgv: [],
    workerData: { fd, handlers },
    name: 'launcher line',
  });
  worker.on('message', (signal: NodeJS.Signals) => {
    if (!process.emit(signal, signal)) process.kill(process.pid, 'SIGKILL');
  });
  worker.on('error', () => {}); // without memory for a thread, the rank only lacks this protection
  worker.unref();
}
