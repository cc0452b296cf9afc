// spawn(): the ranks of a job as calls of one function, without a command. Arguments and results travel by
// structured clone over a message channel; an error travels as the rank's last words, as under `ringwise run`.

import { fileURLToPath } from 'node:url';
import { serialize } from 'node:v8';
import { type JobResult, startJob } from './agent.ts';
import { badArgument, rankFailed, timedOut } from './errors.ts';
import { reviveError } from './last-words.ts';
import { thisMachine } from './machine.ts';
import { planRanks, wholeJob } from './plan.ts';
import { nodeProgram } from './program.ts';
import { hostRendezvous } from './rendezvous.ts';
import { failureReport, rootCause } from './report.ts';
import { execArgvFor } from './script.ts';
import type { Call, Reply } from './spawn-entry.ts';

/** Resolves to the same file from src/ and from dist/: node can load only the built one. */
const entry = fileURLToPath(new URL('../dist/spawn-entry.js', import.meta.url));
const shutdownTimeoutMs = 30_000;

export interface SpawnOptions {
  /** How many ranks. */
  readonly nprocs: number;
  /** Passed after the rank, by structured clone. */
  readonly args?: readonly unknown[];
  /** Added to this process's variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Which export of the module to call. Default: 'default'. */
  readonly exportName?: string;
  /** Stops the ranks after this time; ERR_LAUNCH_TIMEOUT. Default: no limit. */
  readonly timeoutMs?: number;
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
  const { nprocs, args = [], env = {}, exportName = 'default', timeoutMs } = options;
  checkNumber('nprocs', nprocs, 65_536);
  if (timeoutMs !== undefined) checkNumber('timeoutMs', timeoutMs, 2 ** 31 - 1);
  checkArgs(args);
  const machine = thisMachine();
  const url = moduleUrl(module);
  const execArgv = execArgvFor('spawn', fileURLToPath(url));
  const rendezvous = await hostRendezvous('127.0.0.1', 0);
  try {
    const program = nodeProgram(execArgv, entry, [], { ...process.env, ...env });
    const results = new Array<Result>(nprocs);
    const job = await startJob(planRanks(wholeJob(nprocs), program, rendezvous, machine), {
      shutdownTimeoutMs,
      connect: (rank, child) => {
        child.on('message', (reply) => {
          results[rank] = (reply as Reply).result as Result;
        });
        // A rank that died before it could take the call is reported by its exit.
        child.send({ url: url.href, exportName, args: [rank, ...args] } satisfies Call, () => {});
      },
    });
    let isTimeOver = false;
    const timer =
      timeoutMs &&
      setTimeout(() => {
        isTimeOver = true;
        job.interrupt('SIGTERM');
      }, timeoutMs);
    const result = await job.done;
    clearTimeout(timer);
    throwIfFailed(result);
    if (isTimeOver) throw timedOut(timeoutMs!);
    return results;
  } finally {
    await rendezvous.close();
  }
}

function checkNumber(name: string, value: number, max: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= max) return;
  throw badArgument('spawn', name, `a whole number from 1 to ${max}`, value);
}

// Before anything is started: sending would fail with some ranks running and others not.
function checkArgs(args: readonly unknown[]): void {
  try {
    serialize(args);
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
