// `ringwise run`: arguments in, exit code out. With cli.ts the only place that writes to the terminal. runScript() is
// the part of it that other commands share.

import { resolve } from 'node:path';
import { type Job, type JobResult, startJob } from './agent.ts';
import { parseRun, type RunOptions } from './args.ts';
import { runHelp } from './flags.ts';
import { thisMachine } from './machine.ts';
import type { Write } from './output.ts';
import { planRanks, rankCount } from './plan.ts';
import { hostRendezvous } from './rendezvous.ts';
import { exitCodeOf, failureReport, rootCause } from './report.ts';
import { execArgvFor } from './script.ts';
import { terminal } from './terminal.ts';

/** Runs the command and returns its exit code. Takes over the process's signals. */
export async function run(argv: readonly string[]): Promise<number> {
  const options = parseRun(argv, process.env);
  if (options === 'help') {
    process.stdout.write(runHelp);
    return 0;
  }
  return await runScript('ringwise run', options, terminal());
}

/**
 * Runs the ranks of a script to their end, explains a failure, and returns the exit code. Takes over the process's
 * signals. Without `write` the ranks print to this process's stdout and stderr themselves, lines unmarked.
 */
export async function runScript(command: string, options: RunOptions, write?: Write): Promise<number> {
  const result = await runJob(command, options, write);
  explain(result);
  return exitCodeOf(result);
}

async function runJob(command: string, options: RunOptions, write: Write | undefined): Promise<JobResult> {
  const machine = thisMachine();
  const nproc = rankCount(command, options.nprocPerNode, machine);
  const file = resolve(options.script);
  const execArgv = execArgvFor(command, file);
  const rendezvous = await hostRendezvous(options.masterAddr, options.masterPort, options.runId);
  try {
    const program = { execArgv, file, args: options.scriptArgs, env: rankColors(process.env) };
    const job = await startJob(planRanks(nproc, program, rendezvous, machine), {
      shutdownTimeoutMs: options.shutdownTimeoutMs,
      ...(write && { write }),
    });
    passOnSignals(job);
    return await job.done;
  } finally {
    await rendezvous.close();
  }
}

// A rank prints into a pipe and so without colours; on a terminal it may use them all the same.
function rankColors(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const isDecided = env.FORCE_COLOR !== undefined || env.NO_COLOR !== undefined;
  return process.stdout.isTTY && !isDecided ? { ...env, FORCE_COLOR: '1' } : env;
}

function passOnSignals(job: Job): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) {
    process.on(signal, () => job.interrupt(signal));
  }
  // Whoever read our output has gone, as in `ringwise run … | head`.
  for (const stream of [process.stdout, process.stderr]) {
    stream.once('error', () => job.interrupt('SIGTERM'));
    stream.on('error', () => {});
  }
}

function explain(result: JobResult): void {
  const root = rootCause(result.outcomes);
  if (root) process.stderr.write(`ringwise: ${failureReport(result, root)}\n`);
  else if (result.interruptedBy) process.stderr.write(`ringwise: stopped by ${result.interruptedBy}.\n`);
}
