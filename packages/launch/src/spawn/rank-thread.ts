// Runs one rank of spawn() as a thread of this process. The thread has its own variables, but shares memory
// limits, signals, the working directory and native crashes with the process. A stop ends it at once between
// two JavaScript statements; inside native code it ends when that returns.

import { hostname } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { RankSpec } from '../agent/plan.ts';
import { neverStarted, type RankOutcome, type RankProcess } from '../agent/rank-process.ts';
import { entryFile } from '../package-files.ts';
import { failureOf } from '../report/failure.ts';
import { isSecondary, reportError } from '../report/last-words.ts';
import type { LastWords } from '../report/words.ts';
import { type Call, isOurs, type Reply } from './call.ts';
import type { ThreadCall } from './thread-entry.ts';

/**
 * Starts a thread. `registrars` come from registrarsFor(). Calls `onFailure` as soon as the rank fails
 * without having been stopped.
 */
export function startThread(
  { rank, env }: Pick<RankSpec, 'rank' | 'env'>,
  registrars: readonly string[],
  call: Call,
  onReply: (reply: Reply) => void,
  onFailure: (isSecondary: boolean) => void,
): RankProcess {
  let worker: Worker;
  try {
    const workerData: ThreadCall = { call, registrars };
    worker = new Worker(entryFile('thread-entry.js'), {
      workerData,
      env,
      execArgv: [],
      name: `rank ${rank}`,
    });
  } catch (error) {
    return neverStarted(rank, Promise.resolve(error), onFailure);
  }
  let lastWords: LastWords | null = null;
  let stoppedNs: bigint | null = null;
  worker.on('message', (message: unknown) => {
    if (!isOurs(message)) return;
    if ('lastWords' in message) lastWords = message.lastWords;
    else if ('result' in message) onReply(message);
  });
  // A thread that runs out of memory cannot send last words itself.
  worker.on('error', (error) => {
    lastWords ??= { timeNs: process.hrtime.bigint(), error: reportError(error) };
  });
  const outcome = new Promise<RankOutcome>((resolve) => {
    worker.on('exit', (exitCode) => {
      const endedNs = process.hrtime.bigint();
      const signal = null;
      if (exitCode !== 0 && stoppedNs === null) {
        onFailure(lastWords !== null && isSecondary(lastWords.error));
      }
      const failure = failureOf({ exitCode, signal, endedNs, stoppedNs, lastWords });
      const ended = { exitCode, signal, ...failure };
      resolve({ rank, host: hostname(), pid: process.pid, ...ended, tail: [], logFile: null });
    });
  });
  return {
    pid: process.pid,
    outcome,
    stop: () => {
      stoppedNs ??= process.hrtime.bigint();
      void worker.terminate();
    },
  };
}
