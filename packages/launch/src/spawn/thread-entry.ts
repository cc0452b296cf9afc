// What a rank of spawn() runs when it is a thread: makes the call that it was started with, sends the result or its
// last words, and ends, whatever is still open here. process.exit() ends a thread only, and what it has posted arrives.

import type { EventEmitter } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { flushOutput } from '../cli/terminal.ts';
import { reportError } from '../report/last-words.ts';
import type { LastWords } from '../report/words.ts';
import { type Call, makeCall, type Reply } from './call.ts';

export interface ThreadCall {
  readonly call: Call;
  /** Modules with register(), to be called first. */
  readonly registrars: readonly string[];
}

export type ThreadMessage = Reply | { readonly lastWords: LastWords };

const post = (message: ThreadMessage) => parentPort!.postMessage(message);

process.setSourceMapsEnabled(true);
process.on('uncaughtExceptionMonitor', (error) =>
  post({ lastWords: { timeNs: process.hrtime.bigint(), error: reportError(error) } }),
);

const { call, registrars } = workerData as ThreadCall;
try {
  for (const url of registrars) ((await import(url)) as { register: () => void }).register();
  post(await makeCall(call));
  await flushOutput();
  process.exit();
} catch (error) {
  (process as EventEmitter).emit('uncaughtExceptionMonitor', error);
  await flushOutput();
  process.exit(1);
}
