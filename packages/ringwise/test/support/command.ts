// Runs the real command on the scripts in fixtures/. Fails a test that leaves a process of its jobs behind.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, vi } from 'vitest';
import { processesOf } from './traces.ts';

export const command = fileURLToPath(new URL('../../bin/ringwise.js', import.meta.url));
const fixtures = fileURLToPath(new URL('../fixtures/', import.meta.url));

export interface Job {
  readonly runId: string;
  /** Process id of the launcher. */
  readonly pid: number;
  /** Output so far of the launcher, which includes that of the ranks. */
  readonly out: { stdout: string; stderr: string };
  readonly exitCode: Promise<number | null>;
}

interface Started extends Job {
  readonly child: ChildProcess;
}

const jobs: Started[] = [];

afterEach(async () => {
  for (const { runId, child } of jobs.splice(0)) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    try {
      await expect.poll(() => processesOf(runId), { message: 'left by the job' }).toEqual([]);
    } finally {
      for (const pid of processesOf(runId)) process.kill(pid, 'SIGKILL');
    }
  }
});

/** Starts `ringwise run` on one host for a script, which lies in fixtures/ unless its path is absolute. */
export const startJob = (
  nproc: number,
  script: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Job => startLauncher(randomUUID(), ['--standalone', '--nproc-per-node', `${nproc}`], script, args, env);

/** Starts one of the launchers of job `runId` with these flags. */
export function startLauncher(
  runId: string,
  flags: readonly string[],
  script: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Job {
  const argv = [command, 'run', '--rdzv-id', runId, ...flags, script, ...args];
  const child = spawn(process.execPath, argv, {
    cwd: fixtures,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const out = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      out[stream] += text;
    });
  }
  const exitCode = once(child, 'close').then(([code]) => code as number | null);
  const job: Started = { out, exitCode, runId, child, pid: child.pid! };
  jobs.push(job);
  return job;
}

/** Runs a job that is expected to end by itself. */
export async function runJob(nproc: number, script: string, args?: readonly string[]) {
  const { out, exitCode } = startJob(nproc, script, args);
  return { exitCode: await exitCode, ...out };
}

/** Waits until `count` ranks have printed `word` and a number, and returns the numbers by rank. Throws after 120 s. */
export function numbersFrom({ out }: Job, word: string, count: number): Promise<Map<number, number>> {
  const pattern = new RegExp(`^\\[(\\d+)\\] ${word} (\\d+)$`, 'gm');
  return vi.waitFor(
    () => {
      const found = [...out.stdout.matchAll(pattern)].map(
        ([, rank, n]) => [Number(rank), Number(n)] as const,
      );
      if (found.length < count) throw new Error(`not ${count} ranks printed "${word}":\n${out.stderr}`);
      return new Map(found);
    },
    { timeout: 120_000, interval: 5 },
  );
}
