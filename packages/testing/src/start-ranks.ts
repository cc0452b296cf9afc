// Runs one function in several real processes that see the environment of a launched job, with a store to meet at.
// Each rank leads a process group of its own, so that what it starts can be ended with it.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { serveStore } from '@ringwise/store';
import { type Job, rankEnvironment } from './environment.ts';
import type { RankCall, RankReport } from './rank-main.ts';
import type { RankResult } from './results.ts';

export interface RankOptions {
  /** Arguments of the function after the rank, sent by structured clone. */
  readonly args?: readonly unknown[];
  /** Variables to add to the environment of all ranks. */
  readonly env?: Readonly<Record<string, string>>;
  /** Milliseconds until all ranks that still run are killed. Default: 120,000, below the usual limit of a test. */
  readonly timeoutMs?: number;
  /** The secret of the store. Default: a random one; false: none. */
  readonly secret?: string | false;
  /** Program that stands for node, such as one for another processor in an emulator. Default: this node. */
  readonly node?: string;
  /** Flags for node, such as --expose-gc. */
  readonly execArgv?: readonly string[];
}

export interface RunningRanks {
  readonly pids: readonly number[];
  /** Sends a signal, by default SIGKILL, to one rank. */
  readonly kill: (rank: number, signal?: NodeJS.Signals) => void;
  /** Resolves when all processes have ended, in rank order. Never rejects because of a rank. */
  readonly results: Promise<RankResult[]>;
}

/** Module that lets a rank import TypeScript. */
const loader = new URL('../loader/register.mjs', import.meta.url).href;

// Of longer output of a rank, only the end is kept.
const maxOutputChars = 1 << 20;

/**
 * Starts `size` processes that import the module at `moduleUrl` (TypeScript or JavaScript) and call its export
 * `name` as `name(rank, ...args)`. A rank ends by itself once nothing keeps it alive.
 */
export async function startRanks(
  size: number,
  moduleUrl: URL | string,
  name: string,
  options: RankOptions = {},
): Promise<RunningRanks> {
  const { args = [], env = {}, timeoutMs = 120_000, node = process.execPath, execArgv = [] } = options;
  const secret = options.secret ?? randomBytes(16).toString('hex');
  const server = await serveStore(secret === false ? {} : { secret });
  const job: Job = {
    size,
    port: server.port,
    runId: randomBytes(8).toString('hex'),
    secret: secret === false ? undefined : secret,
  };
  const call: RankCall = { moduleUrl: String(moduleUrl), name, args };
  const ranks = Array.from(
    { length: size },
    (_, rank) => new Rank(rank, call, rankEnvironment(rank, job, env), node, execArgv),
  );
  const timer = setTimeout(() => {
    for (const rank of ranks) rank.timeOut();
  }, timeoutMs);
  const results = Promise.all(ranks.map((rank) => rank.result)).finally(async () => {
    clearTimeout(timer);
    await server.close();
  });
  return {
    pids: ranks.map((rank) => rank.pid),
    kill: (rank, signal = 'SIGKILL') => ranks[rank]!.kill(signal),
    results,
  };
}

/** Calls startRanks() and waits for the results, for tests that need nothing else. */
export async function withRanks(
  size: number,
  moduleUrl: URL | string,
  name: string,
  options: RankOptions = {},
): Promise<RankResult[]> {
  const { results } = await startRanks(size, moduleUrl, name, options);
  return await results;
}

class Rank {
  readonly result: Promise<RankResult>;
  readonly #rank: number;
  readonly #child: ChildProcess;
  #report: RankReport | undefined;
  #endedAtMs = 0;
  #isTimedOut = false;
  #stdout = '';
  #stderr = '';

  constructor(
    rank: number,
    call: RankCall,
    env: NodeJS.ProcessEnv,
    node: string,
    execArgv: readonly string[],
  ) {
    this.#rank = rank;
    // In this package's own tests, this module and rank-main are TypeScript.
    const main = new URL(
      import.meta.url.endsWith('.ts') ? './rank-main.ts' : './rank-main.js',
      import.meta.url,
    );
    const program = [fileURLToPath(main), `${process.pid}`];
    const argv = [...execArgv, '--enable-source-maps', '--import', loader, ...program];
    this.#child = spawn(node, argv, {
      env,
      detached: true,
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.#child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout = (this.#stdout + text).slice(-maxOutputChars);
    });
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-maxOutputChars);
    });
    this.#child.on('message', (report: RankReport) => {
      this.#report = report;
      this.#endedAtMs = performance.now();
    });
    // A rank that dies before it reads its call breaks the channel. The end of its process is reported below.
    this.#child.send(call, () => {});
    this.result = new Promise((resolve) => {
      this.#child.on('error', (error) => {
        this.#stderr += String(error);
        if (this.#child.pid === undefined) resolve(this.#outcome(null, null));
      });
      // Kill the processes that the rank has started: they must not outlive it, and may hold its output open.
      this.#child.on('exit', () => this.#killGroup());
      this.#child.on('close', (exitCode, signal) => resolve(this.#outcome(exitCode, signal)));
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  timeOut(): void {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#isTimedOut = true;
    this.#killGroup();
  }

  #killGroup(): void {
    try {
      process.kill(-this.pid, 'SIGKILL');
    } catch {
      // The group is empty.
    }
  }

  #outcome(exitCode: number | null, signal: NodeJS.Signals | null): RankResult {
    const report = this.#report;
    const isGoodEnd = exitCode === 0 || report?.kind === 'error';
    return {
      rank: this.#rank,
      pid: this.pid,
      status: this.#isTimedOut ? 'timed-out' : report && isGoodEnd ? report.kind : 'exited',
      ...(report?.kind === 'ok' && { value: report.value }),
      ...(report?.kind === 'error' && { error: report.error }),
      exitCode,
      signal,
      stdout: this.#stdout,
      stderr: this.#stderr,
      endedAtMs: report ? this.#endedAtMs : performance.now(),
    };
  }
}
