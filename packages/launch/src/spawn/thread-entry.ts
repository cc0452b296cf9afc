// The entry of a rank of spawn() that is a thread: makes the call from workerData, sends the result or its
// last words, and ends even if handles are still open. In a thread, process.exit() ends only the thread, and
// messages that it has posted are delivered.

import type { EventEmitter } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { flushOutput } from '../cli/terminal.ts';
import { hasErrorHandler, reportError } from '../report/last-words.ts';
import { type Call, type Failed, failedBy, makeCall, type Reply, sendReply } from './call.ts';

export interface ThreadCall {
  readonly call: Call;
  /** URLs of modules whose register() is called first. */
  readonly registrars: readonly string[];
}

const post = (message: Reply | Failed) => parentPort!.postMessage(message);

process.setSourceMapsEnabled(true);
process.on('uncaughtExceptionMonitor', (error) => {
  const timeNs = process.hrtime.bigint();
  post(failedBy({ timeNs, error: reportError(error), hasHandler: hasErrorHandler() }));
});

const { call, registrars } = workerData as ThreadCall;
try {
  for (const url of registrars) ((await import(url)) as { register: () => void }).register();
  await sendReply(await makeCall(call), post);
  await flushOutput();
  process.exit();
} catch (error) {
  (process as EventEmitter).emit('uncaughtExceptionMonitor', error);
  await flushOutput();
  process.exit(1);
}
