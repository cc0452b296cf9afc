// Runs an elastic training job on two hosts and disturbs it again and again: a rank is killed or stopped, a launcher is
// killed, or a host is cut off. A launcher that ends is restarted, as an operator or a scheduler would do. Each epoch's
// loss must equal that of an undisturbed run, and the job must leave nothing behind.

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
  /** Disturbances in the order of their use. 'cut' requires `namespaces`. */
  readonly plan: readonly Disturbance[];
  /** Returns numbers from 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
  /** Uses two network namespaces as hosts. Otherwise both launchers run on this host's loopback. */
  readonly namespaces: boolean;
  /** Port of the store on loopback. Ignored with namespaces, in which all ports are free. */
  readonly port: number;
  readonly onDisturbed?: (index: number, what: Disturbance, recoveredMs: number) => void;
}

export interface SoakResult {
  /** Epochs whose loss differed from that of the undisturbed run, as "epoch: got instead of expected". */
  readonly wrong: readonly string[];
  /** Epochs whose loss was not printed: the process that had the line was killed. A later start had their snapshot. */
  readonly untold: readonly number[];
  /** Number of times that the job resumed from a snapshot. */
  readonly resumed: number;
  readonly epochs: number;
  /** Time from each disturbance to the end of the next epoch, in ms. */
  readonly recoveredMs: readonly number[];
  /** Processes and files that the job left behind. */
  readonly left: readonly string[];
}

const command = fileURLToPath(new URL('../../bin/ringwise.js', import.meta.url));
const script = fileURLToPath(new URL('../../../../examples/elastic.ts', import.meta.url));
const nprocPerNode = 2;
const patienceMs = 180_000;
/** Time limit for the undisturbed run, and for the rest of the disturbed one, which may have all epochs to go. */
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

/** A job of two launchers with their output so far. */
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
    // On loopback, either launcher could keep the store. Starting the first one alone makes it keep the store.
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
      // Restarts a launcher that was given up or has lost the store. The launcher that keeps the store restarts first.
      else if (!this.#isClosing)
        setTimeout(() => this.#isClosing || this.#start(index), index === 0 ? 0 : 500);
    });
  }

  /** Returns [epoch, loss] by epoch, with the loss that was printed last. */
  epochs(): [number, string][] {
    const told = [...this.#out.join('\n').matchAll(/epoch (\d+) of \d+ on \d+ ranks: loss (\S+)/g)];
    return [...new Map(told.map(([, epoch, loss]) => [Number(epoch), loss!] as const))].sort(
      (a, b) => a[0] - b[0],
    );
  }

  resumed(): number {
    return [...this.#out.join('\n').matchAll(/resuming from epoch/g)].length;
  }

  /** Tells whether a start of all ranks resumed after this epoch, and thus found its snapshot. */
  hasSaved(epoch: number): boolean {
    return this.#out.join('\n').includes(`resuming from epoch ${epoch + 1}\n`);
  }

  /** Waits until all ranks have resumed since the last disturbance, and then until another epoch has ended. */
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

  /** Cuts the second host's network for 4 s, long enough for the job to give the host up. */
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

  /** Kills the launchers that still run. */
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

/** Sends a signal to a process of the job. Skips other processes, because the system reuses pids. */
function kill(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid !== undefined && commandLine(`${pid}`).includes(script)) process.kill(pid, signal);
}

/**
 * Returns the processes that the job left: those whose command line names the snapshot's folder, and those in the
 * namespaces. Waits up to 2 s for processes that are about to end.
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

/** Returns the files that a job could leave: shared memory, and the launcher's folders, which bear the run's name. */
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
