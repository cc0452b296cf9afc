// An elastic training job on two hosts that is disturbed again and again: a rank is killed or stopped, a launcher is
// killed, a host is cut off. Whoever ends is started again, as an operator or a scheduler would. What must come out is
// what comes out undisturbed, epoch by epoch, and nothing may be left.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Hosts, makeHosts } from '@ringwise/testing';

export const disturbances = ['rank', 'stopped rank', 'launcher', 'launcher with the store', 'cut'] as const;
export type Disturbance = (typeof disturbances)[number];

export interface SoakOptions {
  /** In order. 'cut' needs namespaces. */
  readonly plan: readonly Disturbance[];
  /** Numbers from 0 to 1. */
  readonly random: () => number;
  /** Two network namespaces as hosts; else both launchers are on this host's loopback. */
  readonly namespaces: boolean;
  /** Of loopback; namespaces have all ports to themselves. */
  readonly port: number;
  readonly onDisturbed?: (index: number, what: Disturbance, recoveredMs: number) => void;
}

export interface SoakResult {
  /** Epochs whose loss was not that of the undisturbed run, as "epoch: got instead of expected". */
  readonly wrong: readonly string[];
  /**
   * Epochs of which nothing was heard, as what had their line was killed with it; a later start found their
   * snapshot.
   */
  readonly untold: readonly number[];
  /** The epoch that was resumed from, after each disturbance of a run. */
  readonly resumed: number;
  readonly epochs: number;
  /** From each disturbance to the next epoch's end. */
  readonly recoveredMs: readonly number[];
  /** Processes, listening sockets and files that were left. */
  readonly left: readonly string[];
}

const command = fileURLToPath(new URL('../../bin/ringwise.js', import.meta.url));
const script = fileURLToPath(new URL('../../../../examples/elastic.ts', import.meta.url));
const nprocPerNode = 2;
const patienceMs = 180_000;
/** An undisturbed run has all its epochs to go. */
const wholeRunMs = 600_000;

export async function soak(options: SoakOptions): Promise<SoakResult> {
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-kills-'));
  const before = new Set(files());
  const hosts = options.namespaces ? makeHosts(2) : null;
  const epochs = 6 + 4 * options.plan.length;
  const job = (name: string, pauseMs: number) =>
    new Job(options, hosts, [
      '--snapshot',
      join(folder, name),
      '--epochs',
      `${epochs}`,
      '--pause-ms',
      `${pauseMs}`,
    ]);
  const undisturbed = job('undisturbed.safetensors', 0);
  const disturbed = job('disturbed.safetensors', 50);
  try {
    await undisturbed.run();
    await undisturbed.untilDone();
    await disturbed.run();
    const recoveredMs: number[] = [];
    for (const [index, what] of options.plan.entries()) {
      await disturbed.untilEpochs(1 + Math.floor(2 * options.random()));
      const startMs = performance.now();
      await disturbed.disturb(what);
      await disturbed.untilResumed();
      recoveredMs.push(performance.now() - startMs);
      options.onDisturbed?.(index, what, performance.now() - startMs);
    }
    await disturbed.untilDone();
    const right = new Map(undisturbed.epochs());
    const told = new Map(disturbed.epochs());
    const untold = [...right.keys()].filter((epoch) => !told.has(epoch) && disturbed.hasSaved(epoch));
    const wrong = Array.from({ length: epochs }, (_, epoch) => epoch)
      .filter((epoch) => told.get(epoch) !== right.get(epoch) && !untold.includes(epoch))
      .map((epoch) => `${epoch}: ${told.get(epoch)} instead of ${right.get(epoch)}`);
    const left = await leftProcesses(folder, hosts);
    left.push(...files().filter((file) => !before.has(file)));
    left.push(...readdirSync(folder).filter((name) => !/^(un)?disturbed\.safetensors$/.test(name)));
    return { wrong, untold, resumed: disturbed.resumed(), epochs, recoveredMs, left };
  } finally {
    for (const each of [undisturbed, disturbed]) await each.close();
    await hosts?.close();
    rmSync(folder, { recursive: true });
  }
}

/** Two launchers, and what they have said. */
class Job {
  readonly #options: SoakOptions;
  readonly #hosts: Hosts | null;
  readonly #argv: readonly string[];
  readonly #children: (ChildProcess | null)[] = [null, null];
  readonly #out: string[] = ['', ''];
  readonly #err: string[] = ['', ''];
  #done = 0;
  #isClosing = false;
  #resumedBefore = 0;

  constructor(options: SoakOptions, hosts: Hosts | null, args: readonly string[]) {
    this.#options = options;
    this.#hosts = hosts;
    const endpoint = hosts ? `${hosts.hosts[0]!.address}:29400` : `127.0.0.1:${options.port}`;
    this.#argv = [
      ...[process.execPath, command, 'run', '--nnodes', '2', '--nproc-per-node', `${nprocPerNode}`],
      ...['--rdzv-backend', 'c10d', '--rdzv-endpoint', endpoint, '--rdzv-id', 'soak'],
      ...['--rdzv-conf', 'join_timeout=60', '--max-restarts', '100000', '--shutdown-timeout', '1'],
      ...[script, ...args],
    ];
  }

  async run(): Promise<void> {
    this.#start(0);
    // On loopback both could keep the store: the first shall.
    await this.#until('the store', () => /waiting for 2 hosts/.test(this.#err[0]!));
    this.#start(1);
  }

  #start(index: number): void {
    const env = { ...process.env, RINGWISE_SECRET: 'of the soak', RINGWISE_TIMEOUT_MS: '8000' };
    const child = this.#hosts
      ? this.#hosts.start(this.#hosts.hosts[index]!, this.#argv, { env })
      : spawn(this.#argv[0]!, this.#argv.slice(1), { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#children[index] = child;
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.#out[index] += text;
    });
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#err[index] += text;
    });
    child.once('close', (exitCode) => {
      this.#children[index] = null;
      this.#err[index] += `ended with ${exitCode}\n`;
      if (exitCode === 0) this.#done++;
      // A host that was given up, or has lost the store, is started again; the one with the store first.
      else if (!this.#isClosing)
        setTimeout(() => this.#isClosing || this.#start(index), index === 0 ? 0 : 500);
    });
  }

  /** [epoch, loss], of the last time that it was told. */
  epochs(): [number, string][] {
    const told = [...this.#out.join('\n').matchAll(/epoch (\d+) of \d+ on \d+ ranks: loss (\S+)/g)];
    return [...new Map(told.map(([, epoch, loss]) => [Number(epoch), loss!] as const))].sort(
      (a, b) => a[0] - b[0],
    );
  }

  resumed(): number {
    return [...this.#out.join('\n').matchAll(/resuming from epoch/g)].length;
  }

  /** Whether a start of all ranks went on after this epoch. */
  hasSaved(epoch: number): boolean {
    return this.#out.join('\n').includes(`resuming from epoch ${epoch + 1}\n`);
  }

  /** Once more than so far, and as far as the end of an epoch. */
  async untilResumed(): Promise<void> {
    const before = this.#resumedBefore;
    await this.#until('another start of all ranks', () => this.resumed() > before);
    await this.untilEpochs(1);
  }

  async untilEpochs(more: number): Promise<void> {
    const goal = (this.epochs().at(-1)?.[0] ?? -1) + more;
    await this.#until(`epoch ${goal}`, () => (this.epochs().at(-1)?.[0] ?? -1) >= goal);
  }

  async untilDone(): Promise<void> {
    await this.#until('the end of both launchers', () => this.#done === 2, wholeRunMs);
  }

  async disturb(what: Disturbance): Promise<void> {
    this.#resumedBefore = this.resumed();
    const pids = this.#out.flatMap((text) =>
      [...text.matchAll(/rank \d+ of \d+ runs as pid (\d+)/g)]
        .slice(-nprocPerNode)
        .map(([, pid]) => Number(pid)),
    );
    const pid = pids[Math.floor(this.#options.random() * pids.length)];
    if (what === 'rank') kill(pid, 'SIGKILL');
    else if (what === 'stopped rank') kill(pid, 'SIGSTOP');
    else if (what === 'launcher') kill(this.#children[1]?.pid, 'SIGKILL');
    else if (what === 'launcher with the store') kill(this.#children[0]?.pid, 'SIGKILL');
    else await this.#cut();
  }

  /** The second host's cable is out for so long that it is given up. */
  async #cut(): Promise<void> {
    const { name } = this.#hosts!.hosts[1]!;
    execFileSync('ip', ['-n', name, 'link', 'set', 'eth0', 'down']);
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    execFileSync('ip', ['-n', name, 'link', 'set', 'eth0', 'up']);
  }

  async #until(what: string, holds: () => boolean, withinMs = patienceMs): Promise<void> {
    const endMs = performance.now() + withinMs;
    while (!holds()) {
      if (performance.now() > endMs) throw new Error(`${what}: not within ${withinMs} ms\n${this.#story()}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  #story(): string {
    return [0, 1]
      .map((index) => `host ${index}:\n${this.#out[index]!.slice(-1500)}\n${this.#err[index]!.slice(-3000)}`)
      .join('\n');
  }

  /** Ends what still runs. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const child of this.#children) {
      if (!child) continue;
      const ended = once(child, 'close');
      child.kill('SIGKILL');
      await ended;
    }
  }
}

/** Only a process of the job: numbers are used again. */
function kill(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid !== undefined && commandLine(`${pid}`).includes(script)) process.kill(pid, signal);
}

/**
 * What the job's processes have in common is the folder of their snapshot; those that are just ending may
 * take a second.
 */
async function leftProcesses(folder: string, hosts: Hosts | null): Promise<string[]> {
  const endMs = performance.now() + 2_000;
  for (;;) {
    const left = readdirSync('/proc').flatMap((pid) => {
      const text = /^\d+$/.test(pid) && Number(pid) !== process.pid ? commandLine(pid) : '';
      return text.includes(folder) ? [`process ${pid}: ${text}`] : [];
    });
    for (const { name } of hosts?.hosts ?? []) {
      left.push(
        ...execFileSync('ip', ['netns', 'pids', name], { encoding: 'utf8' }).split('\n').filter(Boolean),
      );
    }
    if (left.length === 0 || performance.now() > endMs) return left;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

/**
 * Where something of the job could be forgotten: shared memory, and the launcher's folders, which have the
 * run's name.
 */
function files(): string[] {
  const named: [string, RegExp][] = [
    ['/dev/shm', /ringwise/],
    [tmpdir(), /^soak_/],
  ];
  return named.flatMap(([folder, mark]) =>
    readdirSync(folder)
      .filter((name) => mark.test(name))
      .map((name) => join(folder, name)),
  );
}
