// The host that keeps the store of an elastic job is lost. On three hosts the other two are more than half of the last
// view, and go on in a store of one of them. No two sides ever go on.
import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Hosts, makeHosts, whyNoNamespaces } from '@ringwise/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';

const command = fileURLToPath(new URL('../../../bin/ringwise.js', import.meta.url));
const program = fileURLToPath(new URL('../../fixtures/hosts/elastic-steps.ts', import.meta.url));
const reason = whyNoNamespaces();
const timeout = 300_000;

interface Launcher {
  readonly child: ChildProcess;
  readonly out: { text: string };
  readonly exitCode: Promise<number | null>;
}

describe.skipIf(reason !== null)(`a lost store${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  let made: Hosts;
  let launchers: Launcher[] = [];
  afterEach(() => made.close());

  /** Starts a launcher on each host, the first one before the others, so that it keeps the store. */
  async function start(hosts: number, ...args: readonly string[]): Promise<void> {
    await startRanks(hosts, 1, ...args);
  }

  async function startRanks(hosts: number, ranks: number, ...args: readonly string[]): Promise<void> {
    made = makeHosts(hosts);
    launchers = [];
    await startLaunchers(hosts, ['--elastic', '--nproc-per-node', `${ranks}`], args);
    await until(() => every(new RegExp(`a step on ${hosts * ranks} ranks`)));
  }

  async function startLaunchers(
    hosts: number,
    flags: readonly string[],
    args: readonly string[],
  ): Promise<void> {
    for (let node = 0; node < hosts; node++) {
      launch(node, made.hosts[0]!.address, ['--nnodes', `${hosts}`, ...flags], args);
      if (hosts > 1 && node === 0) await until(() => said().includes('waiting for'));
    }
  }

  /** Starts a launcher on host `node`, which finds the job's store at `endpoint`. */
  function launch(
    node: number,
    endpoint: string,
    flags: readonly string[],
    args: readonly string[],
  ): Launcher {
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, RINGWISE_SECRET: 'of the test' };
    const where = ['--rdzv-backend', 'c10d', '--rdzv-endpoint', endpoint, '--local-addr', `host-${node}`];
    const argv = [process.execPath, command, 'run', ...where, ...flags, program, ...args];
    const child = made.start(made.hosts[node]!, argv, { env });
    const out = { text: '' };
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        out.text += text;
      });
    }
    const exitCode = once(child, 'close').then(([code]) => code as number | null);
    const launcher = { child, out, exitCode };
    launchers.push(launcher);
    return launcher;
  }

  /** Waits until one of these launchers says where another host joins. Returns that launcher and the address. */
  async function keeperOf(some: readonly Launcher[]): Promise<readonly [Launcher, string]> {
    const found = () =>
      some.flatMap((each) => {
        const address = /Another host joins with --rdzv-endpoint (\S+)/.exec(each.out.text)?.[1];
        return address === undefined ? [] : [[each, address] as const];
      });
    await until(() => found().length > 0);
    return found()[0]!;
  }

  const until = (holds: () => boolean) =>
    vi.waitUntil(holds, { timeout: 60_000, interval: 20 }).catch((error: Error) => {
      throw new Error(`${error.message}\n${said()}`);
    });
  const every = (pattern: RegExp) => launchers.every(({ out }) => pattern.test(out.text));
  const said = () => launchers.map(({ out }, host) => `host ${host}:\n${out.text}`).join('\n');
  const ip = (host: number, ...args: readonly string[]) =>
    execFileSync('ip', ['-n', made.hosts[host]!.name, ...args]);

  /** Checks that the ranks of these launchers end well, after the same step and with the same parameters. */
  async function haveEndedTogether(some: readonly Launcher[]): Promise<void> {
    const codes = await Promise.all(some.map(({ exitCode }) => exitCode));
    expect(codes, said()).toEqual(some.map(() => 0));
    const ends = some.map(({ out }) => /done after .*/.exec(out.text)?.[0]);
    expect(ends[0], said()).toMatch(/^done after \d+ steps with \w{64}$/);
    expect(new Set(ends).size, said()).toBe(1);
  }

  /** Checks that hosts 1 and 2 have gone on together to the end, with the same parameters. */
  async function othersHaveGoneOn(): Promise<void> {
    const others = launchers.slice(1);
    expect(others).toHaveLength(2);
    await haveEndedTogether(others);
    for (const { out } of others) expect(out.text).toMatch(/view \d+ of 2 ranks/);
  }

  it('moves to another host when its launcher is killed', { timeout }, async () => {
    await start(3, '2', '50');
    launchers[0]!.child.kill('SIGKILL');
    await othersHaveGoneOn();
  });

  it('moves to another host, where each launcher starts lost ranks of its own again', {
    timeout,
  }, async () => {
    await startRanks(3, 2, '+4', '20');
    launchers[0]!.child.kill('SIGKILL');
    const others = launchers.slice(1);
    for (const { out } of others) await until(() => out.text.includes('a step on 4 ranks'));
    for (const { out } of others) process.kill(Number(/process (\d+)/.exec(out.text)?.[1]), 'SIGKILL');
    expect(await Promise.all(others.map(({ exitCode }) => exitCode)), said()).toEqual([0, 0]);
    for (const { out } of others)
      expect(out.text).toMatch(/starting rank \d again after SIGKILL, restart 1 of \d+/);
    const ends = others.flatMap(({ out }) => out.text.match(/done after .*/g) ?? []);
    expect(ends, said()).toHaveLength(4);
    expect(new Set(ends).size, said()).toBe(1);
  });

  it('moves to another host, where further hosts join, and from there to one of those', {
    timeout,
  }, async () => {
    made = makeHosts(5);
    launchers = [];
    const flags = ['--elastic', '1:3', '--nproc-per-node', '1'];
    // The views of three ranks before the last one are over long before so many steps.
    const args = ['3', '600'];
    await startLaunchers(3, flags, args);
    await until(() => every(/a step on 3 ranks/));
    const [first, ...others] = launchers as [Launcher, ...Launcher[]];
    first.child.kill('SIGKILL');
    const more = ['--nnodes', '3', ...flags];
    const [keeper, second] = await keeperOf(others);
    // The other launcher says the same address.
    const other = others.find((each) => each !== keeper)!;
    await until(() => other.out.text.includes(`the job goes on in the store at ${second},`));
    const fourth = launch(3, second, more, args);
    await until(() => fourth.out.text.includes('a step on 3 ranks'));
    // It starts its rank again by itself.
    process.kill(Number(/process (\d+)/.exec(fourth.out.text)?.[1]), 'SIGKILL');
    await until(() => fourth.out.text.split('a step on 3 ranks').length > 2);
    expect(fourth.out.text).toMatch(/starting rank 3 again after SIGKILL, restart 1 of 3/);
    // The second store is lost as well, and no slot has the number of an earlier one.
    keeper.child.kill('SIGKILL');
    const rest = [other, fourth];
    const [, third] = await keeperOf(rest);
    const fifth = launch(4, third, more, args);
    const all = [...rest, fifth];
    await until(() => all.every(({ out }) => out.text.includes('done after')));
    expect(all).toHaveLength(3);
    await haveEndedTogether(all);
    expect(fifth.out.text).toContain('[6] process ');
  });

  it('moves to another host, where a host that waits for a slot gets that of the lost one', {
    timeout,
  }, async () => {
    made = makeHosts(4);
    launchers = [];
    // Ends after 20 steps on three ranks, when there have been fewer before.
    await startLaunchers(4, ['--elastic', '1:3', '--nproc-per-node', '1'], ['+3', '20']);
    await until(() => said().includes('all 3 ranks of the job have a host'));
    await until(() => said().split('a step on 3 ranks').length > 3);
    launchers[0]!.child.kill('SIGKILL');
    const others = launchers.slice(1);
    expect(others).toHaveLength(3);
    await haveEndedTogether(others);
    expect(said()).toMatch(/The job goes on in the store at \S+, where this host waits/);
  });

  const cuts: readonly [string, () => void][] = [
    ['cut off', () => ip(0, 'link', 'set', 'eth0', 'down')],
    [
      'cut off in one direction: nothing comes from its host',
      () => {
        for (const host of [1, 2]) ip(0, 'route', 'add', 'blackhole', `${made.hosts[host]!.address}/32`);
      },
    ],
    [
      'cut off in one direction: nothing arrives at its host',
      () => {
        for (const host of [1, 2]) ip(host, 'route', 'add', 'blackhole', `${made.hosts[0]!.address}/32`);
      },
    ],
  ];
  it.each(cuts)(
    'moves to another host when its own is %s, which does not go on',
    { timeout },
    async (_, cut) => {
      await start(3, '2', '50');
      cut();
      await othersHaveGoneOn();
      const first = launchers[0]!;
      expect(await first.exitCode, said()).toBe(1);
      expect(first.out.text).toContain('1 of the 3 members of the last view reach the store');
      expect(first.out.text).not.toMatch(/view \d+ of [12] ranks/);
    },
  );

  it('ends the job on two hosts, with the state in a file from which another job goes on', {
    timeout,
  }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ringwise-rescue-'));
    try {
      await start(2, '2', '1000000', folder);
      launchers[0]!.child.kill('SIGKILL');
      const { out, exitCode } = launchers[1]!;
      expect(await exitCode, said()).toBe(1);
      const [, steps = ''] = /writes the state after (\d+) steps to/.exec(out.text) ?? [];
      expect(readdirSync(folder), said()).toEqual([`step-${steps}.snapshot`]);
      await made.close();
      await start(1, '1', '20', folder);
      expect(await launchers[0]!.exitCode, said()).toBe(0);
      expect(said()).toContain(`view 0 of 1 ranks after step ${steps}\n`);
      expect(said()).toContain(`done after ${Number(steps) + 20} steps`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
