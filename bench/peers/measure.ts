// Waits up to a minute until the machine is idle, runs one command to its end, and parses the results that it prints.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Case, Contender } from './contenders.ts';

/** The result for one size in one run. */
export interface Sample {
  readonly bytes: number;
  /** Time of a call in µs: within a host the median, between hosts the mean (see samplesOf). */
  readonly us: number;
  readonly wrong: number;
  /**
   * Time to pass a cache line between cores, measured just before: the placement of virtual cores changes by
   * the second.
   */
  readonly hopNs: number | null;
}

export interface Surroundings {
  /** Path of the program `limits`, which measures the hop; null if it is not available. */
  readonly limits: string | null;
  /**
   * Command through which every command is started, such as a lock or taskset. Empty: wait until the machine
   * is idle.
   */
  readonly through: readonly string[];
  /** True if the ranks are on several hosts. */
  readonly areHosts: boolean;
  readonly timeoutMs: number;
}

export type Outcome = { readonly samples: readonly Sample[] } | { readonly failure: string };

/** Measures a case with one contender. Resolves with null if the contender cannot run it. */
export async function measure(
  contender: Contender,
  test: Case,
  around: Surroundings,
): Promise<Outcome | null> {
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-peers-'));
  try {
    const argv = contender.argv(test, folder);
    if (argv === null) return null;
    if (around.through.length === 0) await quiet();
    return await run(argv, test.verb, around);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function run(
  argv: readonly string[],
  verb: string,
  { limits, through, areHosts, timeoutMs }: Surroundings,
): Promise<Outcome> {
  // Run the hop and the command in one shell, directly one after the other.
  const withHop = limits === null ? argv : ['sh', '-c', '"$0" hop; exec "$@"', limits, ...argv];
  const [command, ...args] = [...through, ...withHop];
  const env = { ...process.env, OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' };
  const child = spawn(command!, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const out = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      out[stream] += text;
    });
  }
  const end = () => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL');
  const timer = setTimeout(end, timeoutMs);
  process.once('exit', end);
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  clearTimeout(timer);
  process.off('exit', end);
  if (code === 0) return { samples: samplesOf(out.stdout, verb, areHosts) };
  const said = out.stderr.trim().split('\n').slice(-3).join(' | ');
  return { failure: `${argv.join(' ')}: ${signal ?? `exit code ${code}`}: ${said}` };
}

/**
 * Between hosts the mean counts. A rank that only sends, as in broadcast, runs ahead until the buffers are full: most
 * calls only add to the queue, and some wait until it is empty. And where the data of the peer has arrived before a
 * rank makes its call, that call ends at once and the next one waits for longer. A median would show one of two kinds.
 * (Within a host the queues are small, and a mean would mostly show how often the process lost its core.)
 */
function samplesOf(stdout: string, verb: string, takesMean: boolean): Sample[] {
  const samples: Sample[] = [];
  let hopNs: number | null = null;
  for (const text of stdout.split('\n').filter((line) => line.startsWith('{'))) {
    const line = JSON.parse(text) as Record<string, number>;
    if (line.hop_ns !== undefined) hopNs = line.hop_ns;
    else {
      samples.push({
        bytes: verb === 'barrier' ? 0 : line.bytes!,
        us: takesMean ? (line.meanUs ?? line.mean_us)! : (line.p50Us ?? line.p50_us)!,
        wrong: line.wrong!,
        hopNs,
      });
    }
  }
  return samples;
}

const busyLimit = 0.08;
const waitLimitMs = 60_000;

/** Resolves when less than 8 % of all cores have been busy for half a second, or after a minute. */
async function quiet(): Promise<void> {
  if (process.platform !== 'linux') return;
  const endMs = performance.now() + waitLimitMs;
  while (performance.now() < endMs) {
    const before = jiffies();
    await delay(500);
    const after = jiffies();
    const idle = (after.idle - before.idle) / Math.max(after.all - before.all, 1);
    if (1 - idle < busyLimit) return;
  }
}

function jiffies(): { readonly all: number; readonly idle: number } {
  const fields = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]!.split(/\s+/).slice(1, 9).map(Number);
  return { all: fields.reduce((a, b) => a + b), idle: fields[3]! + fields[4]! };
}
