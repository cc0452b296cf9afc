// spawn(): the ranks of a job as calls of one function, without a command. Arguments and results travel by
// structured clone over a message channel; an error travels as the rank's last words, as under `ringwise run`.

import { fileURLToPath } from 'node:url';
import { serialize } from 'node:v8';
import { type Job, type JobResult, startJob, watchRanks } from './agent.ts';
import type { Call, Reply } from './call.ts';
import { badArgument, rankFailed, timedOut } from './errors.ts';
import { reviveError } from './last-words.ts';
import { thisMachine } from './machine.ts';
import { planRanks, type RankSpec, wholeJob } from './plan.ts';
import { nodeProgram } from './program.ts';
import { startThread } from './rank-thread.ts';
import { hostRendezvous } from './rendezvous.ts';
import { failureReport, rootCause } from './report.ts';
import { execArgvFor, registrarsFor } from './script.ts';

/** Resolves to the same file from src/ and from dist/: node can load only the built one. */
const entry = fileURLToPath(new URL('../dist/spawn-entry.js', import.meta.url));
const shutdownTimeoutMs = 30_000;

export interface StartOptions {
  /** How many ranks. */
  readonly nprocs: number;
  /** Passed after the rank, by structured clone. */
  readonly args?: readonly unknown[];
  /** Added to this process's variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Which export of the module to call. Default: 'default'. */
  readonly exportName?: string;
  /**
   * Ranks are worker threads of this process instead of processes. They start sooner and may share memory; a native
   * crash of one ends all, and to be stopped they get no SIGTERM. Default: false.
   */
  readonly threads?: boolean;
}

export interface SpawnOptions extends StartOptions {
  /** Stops the ranks after this time; ERR_LAUNCH_TIMEOUT. Default: no limit. */
  readonly timeoutMs?: number;
}

/** Ranks that have been started. */
export interface StartedRanks<Result> {
  /** By rank. Threads have this process's; undefined: it could not be started. */
  readonly pids: readonly (number | undefined)[];
  /**
   * Waits for all ranks: resolves with what they returned, by rank, or rejects as spawn() does. With `timeoutMs` it
   * resolves with null when that is over before, and the ranks go on.
   */
  readonly join: {
    (): Promise<Result[]>;
    (timeoutMs: number): Promise<Result[] | null>;
  };
  /** Ends all ranks: this signal, and SIGKILL when the shutdown timeout of 30 s is over; at once when called again. */
  readonly stop: (signal?: NodeJS.Signals) => void;
}

/**
 * Calls `module`'s export with (rank, ...args) in `nprocs` processes, and resolves with what they returned, by rank.
 * The ranks have the environment of `ringwise run` and print to this process's stdout and stderr. When one fails,
 * the others are stopped and the promise rejects with ERR_LAUNCH_RANK_FAILED; its `cause` is the rank's error. A
 * rank's process ends when its function has returned. If this process ends first, the ranks are killed.
 */
export async function spawn<Result = unknown>(
  module: URL | string,
  options: SpawnOptions,
): Promise<Result[]> {
  const { timeoutMs } = options;
  if (timeoutMs === undefined) return await (await startProcesses<Result>(module, options)).join();
  checkNumber('timeoutMs', timeoutMs, 2 ** 31 - 1);
  const ranks = await startProcesses<Result>(module, options);
  const results = await ranks.join(timeoutMs);
  if (results) return results;
  ranks.stop();
  await ranks.join();
  throw timedOut(timeoutMs);
}

/** spawn() without waiting: resolves as soon as the ranks have been started. */
export async function startProcesses<Result = unknown>(
  module: URL | string,
  options: StartOptions,
): Promise<StartedRanks<Result>> {
  const { nprocs, args = [], env = {}, exportName = 'default', threads = false } = options;
  checkNumber('nprocs', nprocs, 65_536);
  checkArgs(args, threads);
  const machine = thisMachine();
  const url = moduleUrl(module);
  const file = fileURLToPath(url);
  const execArgv = execArgvFor('spawn', file);
  const rendezvous = await hostRendezvous('127.0.0.1', 0);
  const results = new Array<Result>(nprocs);
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
            child.on('message', (reply) => take(rank, reply as Reply));
            // A rank that died before it could take the call is reported by its exit.
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
    const result = timeoutMs === undefined ? await ended : await within(timeoutMs, ended);
    if (result === null) return null;
    throwIfFailed(result);
    return results;
  }
  return { pids: job.pids, join, stop: (signal = 'SIGTERM') => job.interrupt(signal) };
}

/** Null when the time is over first. */
async function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, null);
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
  }
}

function checkNumber(name: string, value: number, max: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= max) return;
  throw badArgument('spawn', name, `a whole number from 1 to ${max}`, value);
}

// Before anything is started: sending would fail with some ranks running and others not. Only threads share memory.
function checkArgs(args: readonly unknown[], threads: boolean): void {
  try {
    if (threads) structuredClone(args);
    else serialize(args);
  } catch (cause) {
    throw badArgument('spawn', 'args', 'values that structured clone can copy', args, cause);
  }
}

function moduleUrl(module: URL | string): URL {
  const url = URL.canParse(String(module)) ? new URL(module) : null;
  if (url?.protocol === 'file:') return url;
  throw badArgument(
    'spawn',
    'module',
    "a file URL, as new URL('./worker.ts', import.meta.url)",
    String(module),
  );
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
