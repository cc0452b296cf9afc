// The program of a rank's process. It receives a call from the parent, makes it, reports the result, and ends when
// nothing keeps the process alive.

import { Worker } from 'node:worker_threads';
import type { RankError } from './results.ts';

export interface RankCall {
  readonly moduleUrl: string;
  readonly name: string;
  readonly args: readonly unknown[];
}

export type RankReport =
  | { readonly kind: 'ok'; readonly value: unknown }
  | { readonly kind: 'error'; readonly error: RankError };

/**
 * Ends this rank when its parent, the process `pid`, has ended. A thread watches for that, since the main thread may be
 * stuck in native code.
 */
function watchParent(pid: number): void {
  const look = `setInterval(() => {
    if (process.ppid !== ${pid}) process.kill(process.pid, 'SIGKILL');
  }, 250);`;
  new Worker(look, { eval: true, execArgv: [] }).unref();
}

async function run({ moduleUrl, name, args }: RankCall): Promise<RankReport> {
  try {
    const module = await import(moduleUrl);
    const call = module[name];
    if (typeof call !== 'function') throw new TypeError(`${moduleUrl} exports no function "${name}"`);
    const value = await call(Number(process.env.RANK), ...args);
    structuredClone(value); // throws here if the value cannot be sent
    return { kind: 'ok', value };
  } catch (error) {
    process.exitCode = 1;
    return { kind: 'error', error: portable(error) };
  }
}

/** Copies an error with its own fields. Structured clone would keep only its text. */
function portable(error: unknown): RankError {
  if (!(error instanceof Error)) return { name: typeof error, message: String(error), stack: '' };
  const fields = Object.entries(error).map(([name, field]) => [name, cloned(field)]);
  return {
    ...Object.fromEntries(fields),
    name: error.name,
    message: error.message,
    stack: error.stack ?? '',
    ...(error.cause !== undefined && { cause: portable(error.cause) }),
  };
}

function cloned(field: unknown): unknown {
  if (field instanceof Error) return portable(field);
  try {
    return structuredClone(field);
  } catch {
    return String(field);
  }
}

watchParent(Number(process.argv[2]));
process.once('message', (call: RankCall) => {
  void run(call).then((report) => process.send!(report));
});
