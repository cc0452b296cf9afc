// spawn() runs a function on the ranks of a job, without the command. Arguments and results are sent by
// structured clone over a message channel. A process sends its error through the pipe of last words, as under
// `ringwise run`, and a thread as a message.

import { fileURLToPath } from 'node:url';
import { loopbackAddress } from '@ringwise/store';
import { type Job, type JobResult, startJob, watchRanks } from '../agent/agent.ts';
import { thisMachine } from '../agent/machine.ts';
import { planRanks, type RankSpec, wholeJob } from '../agent/plan.ts';
import { nodeProgram } from '../cli/program.ts';
import { execArgvFor, registrarsFor } from '../cli/script.ts';
import { rankFailed, spawnedWhileLoading, timedOut } from '../errors.ts';
import { entryFile } from '../package-files.ts';
import { hostRendezvous } from '../rendezvous/rendezvous.ts';
import { reviveError } from '../report/last-words.ts';
import { failureReport, rootCause } from '../report/report.ts';
import { within } from '../within.ts';
import { type Call, isLoadingRank, isOurs, type Reply, unpackReply } from './call.ts';
import { startThread } from './rank-thread.ts';
import {
  checkNumber,
  checkOptions,
  checkSignal,
  longestMs,
  moduleUrl,
  type SpawnOptions,
  type StartOptions,
} from './spawn-options.ts';

export type { SpawnOptions, StartOptions };

const shutdownTimeoutMs = 30_000;

/** Handle of ranks that have been started. */
export interface StartedRanks<Result> {
  /** Process ids by rank. Threads have this process's id. Undefined for a rank that could not be started. */
  readonly pids: readonly (number | undefined)[];
  /**
   * Waits for all ranks. Resolves with their results by rank, or rejects as spawn() does. The result of a rank
   * that stop() ended is undefined. With `timeoutMs`, resolves with null if they have not ended by then; the
   * ranks continue.
   */
  readonly join: {
    (): Promise<Result[]>;
    (timeoutMs: number): Promise<Result[] | null>;
  };
  /**
   * Sends all ranks this signal, and SIGKILL after the shutdown timeout of 30 s. Kills them at once when
   * called again.
   */
  readonly stop: (signal?: NodeJS.Signals) => void;
}

/**
 * Calls `module`'s export with (rank, ...args) in `nprocs` processes. Resolves with their results by rank, which are
 * copies (structured clone). The ranks have the environment of `ringwise run` and print to this process's stdout and
 * stderr. If one fails, the others are stopped and the promise rejects with ERR_LAUNCH_RANK_FAILED, whose `cause` is
 * the rank's error. Rejects with ERR_LAUNCH_TIMEOUT after `timeoutMs`, and with ERR_LAUNCH_ARGUMENT for a wrong option.
 * A rank's process ends when its function has returned. If this process ends first, the ranks are killed.
 *
 * @example
 * ```ts
 * // sum.ts: export default (rank: number, step: number) => rank * step;
 * const results = await spawn<number>(new URL('./sum.ts', import.meta.url), { nprocs: 2, args: [10] }); // [0, 10]
 * ```
 */
export async function spawn<Result = unknown>(
  module: URL | string,
  options: SpawnOptions,
): Promise<Result[]> {
  checkOptions('spawn', options, ['timeoutMs']);
  const { timeoutMs, ...start } = options;
  if (timeoutMs !== undefined) checkNumber('spawn', 'timeoutMs', timeoutMs, longestMs);
  const ranks = await startProcesses<Result>(module, start);
  if (timeoutMs === undefined) return await ranks.join();
  const results = await ranks.join(timeoutMs);
  if (results) return results;
  ranks.stop();
  await ranks.join();
  throw timedOut(timeoutMs);
}

/**
 * Starts ranks as spawn() does, but resolves as soon as they have been started. Rejects with ERR_LAUNCH_ARGUMENT for a
 * wrong option. `join()` of the result rejects with the failures of ranks.
 */
export async function startProcesses<Result = unknown>(
  module: URL | string,
  options: StartOptions,
): Promise<StartedRanks<Result>> {
  if (isLoadingRank()) throw spawnedWhileLoading(process.env.RANK);
  checkOptions('startProcesses', options);
  const { nprocs, args = [], env = {}, exportName = 'default', threads = false } = options;
  const machine = thisMachine();
  const url = moduleUrl(module);
  const file = fileURLToPath(url);
  const execArgv = execArgvFor('spawn', file);
  const entry = fileURLToPath(entryFile('spawn-entry.js'));
  const rendezvous = await hostRendezvous(loopbackAddress(), 0);
  const results = new Array<Result>(nprocs).fill(undefined as Result); // no holes, which map() would skip
  const take = (rank: number, { result }: Reply) => {
    results[rank] = result as Result;
  };
  const callOf = (rank: number): Call => ({ url: url.href, exportName, args: [rank, ...args] });
  try {
    const program = nodeProgram(execArgv, entry, [], { ...process.env, ...env });
    const specs = planRanks(wholeJob(nprocs), program, rendezvous, machine);
    const job = threads
      ? startThreads(specs, registrarsFor('spawn', file), callOf, take)
      : await startJob(specs, {
          shutdownTimeoutMs,
          connect: (rank, child) => {
            child.on('message', (message) => {
              if (isOurs(message) && 'packed' in message) take(rank, unpackReply(message));
            });
            // If the rank died before it received the call, its exit is reported instead.
            child.send(callOf(rank), () => {});
          },
        });
    return handle(job, results, rendezvous.close);
  } catch (error) {
    await rendezvous.close();
    throw error;
  }
}

function startThreads(
  specs: readonly RankSpec[],
  registrars: readonly string[],
  callOf: (rank: number) => Call,
  take: (rank: number, reply: Reply) => void,
): Job {
  const start = (onFailure: (isSecondary: boolean) => void) =>
    specs.map((spec) =>
      startThread(spec, registrars, callOf(spec.rank), (reply) => take(spec.rank, reply), onFailure),
    );
  return watchRanks(start, { shutdownTimeoutMs });
}

function handle<Result>(job: Job, results: Result[], close: () => Promise<void>): StartedRanks<Result> {
  const ended = job.done.then(async (result) => {
    await close();
    return result;
  });
  async function join(): Promise<Result[]>;
  async function join(timeoutMs: number): Promise<Result[] | null>;
  async function join(timeoutMs?: number): Promise<Result[] | null> {
    if (timeoutMs !== undefined) checkNumber('join', 'timeoutMs', timeoutMs, longestMs, 0);
    const result = timeoutMs === undefined ? await ended : await within(timeoutMs, ended);
    if (result === null) return null;
    throwIfFailed(result);
    return results;
  }
  const stop = (signal: NodeJS.Signals = 'SIGTERM') => {
    checkSignal('stop', signal);
    job.interrupt(signal);
  };
  return { pids: job.pids, join, stop };
}

function throwIfFailed(result: JobResult): void {
  const root = rootCause(result.outcomes);
  if (!root) return;
  const { rank, exitCode, signal, lastWords } = root;
  const cause = lastWords ? { cause: reviveError(lastWords.error) } : {};
  throw rankFailed(`spawn: ${failureReport(result.outcomes, result.startedNs, root)}`, {
    rank,
    exitCode,
    signal,
    ...cause,
  });
}
