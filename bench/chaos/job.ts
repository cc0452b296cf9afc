// The job that the chaos bench disturbs: two launchers, each with two ranks, on two network namespaces or on
// loopback. A launcher that ends is started again, as an operator or a scheduler would do.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Hosts, makeHosts } from '@ringwise/testing';
import { type Journal, type Line, readJournals } from './journal.ts';

const command = fileURLToPath(new URL('../../packages/launch/bin/ringwise.js', import.meta.url));
const scriptOf = (program: Program) =>
  fileURLToPath(new URL(program === 'job' ? './train-job.ts' : './train.ts', import.meta.url));

export type Mode = 'elastic' | 'restart';
/** loop: train.ts, on the membership alone; job: train-job.ts, by job.steps(). */
export type Program = 'loop' | 'job';

export interface JobOptions {
  readonly mode: Mode;
  readonly program: Program;
  /** Whether the launchers run in network namespaces. */
  readonly hasNamespaces: boolean;
  /** Folder of the journals. */
  readonly folder: string;
  readonly parameters: number;
  /** Time of the work of one micro-batch. */
  readonly workMs: number;
}

/** cut: down; mute: what the host sends is lost, and it still receives; slow: it sends at 256 kbit/s. */
export type LinkState = 'whole' | 'cut' | 'mute' | 'slow';

const filters = {
  // No packet is as small as one byte, so none gets through.
  mute: ['tbf', 'rate', '8bit', 'burst', '1', 'latency', '1ms'],
  slow: ['tbf', 'rate', '256kbit', 'burst', '4kb', 'latency', '400ms'],
} as const;

/** A process of a rank, as its journal tells. */
export interface Rank {
  readonly name: string;
  readonly pid: number;
  readonly slot: number;
  readonly host: number;
  /** Number of steps that it knows to be final; null before it has a view. */
  step: number | null;
  view: number;
  /** When it last wrote a line. */
  t: number;
  hasEnded: boolean;
}

export class Job {
  readonly #options: JobOptions;
  readonly #hosts: Hosts | null;
  #argv: readonly string[] = [];
  readonly #children: (ChildProcess | null)[] = [null, null];
  readonly #output: string[] = ['', ''];
  readonly #offsets = new Map<string, number>();
  readonly #starts = new Set<NodeJS.Timeout>();
  readonly ranks = new Map<string, Rank>();
  /** Lines of final steps so far, with the name of the rank. */
  readonly finals: { readonly name: string; readonly line: Extract<Line, { kind: 'final' }> }[] = [];
  readonly tries = new Map<string, number>();
  readonly exitCodes: (number | null)[] = [null, null];
  #link: LinkState = 'whole';
  #isClosing = false;
  /** Why the job cannot go on. */
  #end: Error | null = null;

  constructor(options: JobOptions) {
    this.#options = options;
    this.#hosts = options.hasNamespaces ? makeHosts(2) : null;
  }

  async start(): Promise<void> {
    const { folder, mode, program, parameters, workMs } = this.#options;
    const endpoint = this.#hosts ? `${this.#hosts.hosts[0]!.address}:29400` : `127.0.0.1:${await freePort()}`;
    this.#argv = [
      ...[process.execPath, command, 'run', '--nnodes', '1:2', '--nproc-per-node', '2'],
      ...['--rdzv-backend', 'c10d', '--rdzv-endpoint', endpoint, '--rdzv-id', 'chaos'],
      ...['--rdzv-conf', 'join_timeout=60,last_call_timeout=2', '--max-restarts', '1000000'],
      ...['--shutdown-timeout', '2', ...(mode === 'elastic' ? ['--elastic', '--grace', '5'] : [])],
      ...[scriptOf(program), folder, mode, `${parameters}`, `${workMs}`],
    ];
    this.#launch(0);
    // The first launcher has to keep the store; on loopback either could.
    await this.until(
      'a rank of the first host',
      () => this.#output[0]!.includes('waiting for') || this.ranks.size > 0,
    );
    this.#launch(1);
  }

  #launch(host: number): void {
    const env = { ...process.env, RINGWISE_SECRET: 'a secret of this bench only', CHAOS_HOST: `${host}` };
    const [program, ...args] = this.#argv as [string, ...string[]];
    const child = this.#hosts
      ? this.#hosts.start(this.#hosts.hosts[host]!, this.#argv, { env })
      : spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#children[host] = child;
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => this.#print(host, text));
    }
    child.once('close', (exitCode, signal) => {
      this.#children[host] = null;
      this.exitCodes[host] = exitCode;
      this.#print(host, `launcher ended with ${exitCode ?? signal}\n`);
      if (exitCode === 0 || this.#isClosing) return;
      if (host === 0 && this.#options.mode === 'elastic') {
        this.#end = new Error(`the job has ended before its last step\n${this.story()}`);
        return;
      }
      const timer = setTimeout(() => {
        this.#starts.delete(timer);
        this.#launch(host);
      }, 500);
      this.#starts.add(timer);
    });
  }

  /** Keeps what a launcher prints: the end of it in memory, all of it in the folder of the journals. */
  #print(host: number, text: string): void {
    this.#output[host] = (this.#output[host]! + text).slice(-20_000);
    appendFileSync(join(this.#options.folder, `host-${host}.log`), text);
  }

  /** Reads the journals. */
  update(): void {
    for (const { name, lines } of readJournals(this.#options.folder, this.#offsets)) {
      for (const line of lines) this.#note(name, line);
    }
  }

  #note(name: string, line: Line): void {
    if (line.kind === 'start') {
      const { pid, slot, host, t } = line;
      this.ranks.set(name, { name, pid, slot, host, step: null, view: -1, t, hasEnded: false });
      return;
    }
    const rank = this.ranks.get(name)!;
    rank.t = line.t;
    if (line.kind === 'view') Object.assign(rank, { view: line.view, step: line.step });
    else if (line.kind === 'try') this.tries.set(`${name} ${line.step} ${line.view}`, line.t);
    else if (line.kind === 'end') rank.hasEnded = true;
    else if (line.kind === 'final') {
      rank.step = line.step + 1;
      this.finals.push({ name, line });
    }
  }

  /** Ranks whose process is alive. */
  get living(): readonly Rank[] {
    return [...this.ranks.values()].filter((rank) => {
      if (!rank.hasEnded && !isAlive(rank.pid)) rank.hasEnded = true;
      return !rank.hasEnded;
    });
  }

  /** Ranks that train. */
  get training(): readonly Rank[] {
    return this.living.filter(({ step }) => step !== null);
  }

  /** Ranks of the latest view that some rank has entered. */
  get members(): readonly Rank[] {
    const { training } = this;
    const latest = Math.max(...training.map(({ view }) => view));
    return training.filter(({ view }) => view === latest);
  }

  /** Number of steps that some rank knows to be final. */
  get step(): number {
    return this.finals.reduce((most, { line }) => Math.max(most, line.step + 1), 0);
  }

  signalLauncher(host: number, signal: NodeJS.Signals): boolean {
    const child = this.#children[host];
    if (!child || child.exitCode !== null) return false;
    return child.kill(signal);
  }

  /** Disturbs the network of the second host, or makes it whole again. */
  setLink(state: LinkState): void {
    const { name } = this.#hosts!.hosts[1]!;
    const queue = (...words: string[]) => execFileSync('tc', ['-n', name, 'qdisc', ...words]);
    if (state === 'cut') execFileSync('ip', ['-n', name, 'link', 'set', 'eth0', 'down']);
    else if (state !== 'whole') queue('add', 'dev', 'eth0', 'root', ...filters[state]);
    else if (this.#link === 'cut') execFileSync('ip', ['-n', name, 'link', 'set', 'eth0', 'up']);
    else queue('delete', 'dev', 'eth0', 'root');
    this.#link = state;
  }

  async until(what: string, holds: () => boolean, withinMs = 120_000): Promise<void> {
    const endMs = performance.now() + withinMs;
    for (;;) {
      this.update();
      if (holds()) return;
      if (this.#end !== null) throw this.#end;
      if (performance.now() > endMs) throw new Error(`${what}: not within ${withinMs} ms\n${this.story()}`);
      await sleep(10);
    }
  }

  /** Waits until both launchers have ended well. */
  async end(): Promise<void> {
    await this.until('the end of both launchers', () => this.exitCodes.every((code) => code === 0));
  }

  story(): string {
    const ranks = this.living.map(({ name, step, view }) => `${name} at step ${step} in view ${view}`);
    const hosts = [0, 1].map((host) => `host ${host}:\n${this.#output[host]!.slice(-3_000)}`);
    return [...ranks, ...hosts].join('\n');
  }

  /** Kills what is left. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const timer of this.#starts) clearTimeout(timer);
    for (const child of this.#children) {
      if (!child || child.exitCode !== null) continue;
      const ended = once(child, 'close');
      child.kill('SIGKILL');
      await ended;
    }
    await this.#hosts?.close();
  }
}

/** Returns the journals in whole, when the job has ended. */
export const allJournals = (folder: string): Journal[] => readJournals(folder, new Map());

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** Returns when the first step that a rank began after `sinceNs` became final there; null if none has. */
export function firstFinalAfter(job: Job, sinceNs: number): number | null {
  let first: number | null = null;
  for (let i = job.finals.length - 1; i >= 0; i--) {
    const { name, line } = job.finals[i]!;
    if (line.t < sinceNs - 60e9) break;
    const begun = job.tries.get(`${name} ${line.step} ${line.view}`);
    if (begun !== undefined && begun > sinceNs && line.t > sinceNs) first = Math.min(first ?? line.t, line.t);
  }
  return first;
}
