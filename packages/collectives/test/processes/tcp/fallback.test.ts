// Ranks in an installation without the native package: what is built is copied into an empty folder, and real processes
// load it from there.
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from '@ringwise/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { findNative } from '../../../src/backends/native.ts';

const packages = fileURLToPath(new URL('../../../..', import.meta.url));
let folder = '';
afterAll(() => rmSync(folder, { recursive: true }));

const program = `
import { init } from '@ringwise/collectives';
process.on('warning', ({ code, message }) => console.log('warning', code, message));
try {
  for (const name of ['first', 'second']) await use(name);
} catch ({ code, message }) {
  console.log(code, message);
}
async function use(name) {
  const group = await init({ name, timeoutMs: 60_000 });
  const x = new Float32Array([group.rank + 1]);
  await group.allReduce(x);
  console.log(group.backend, x[0]);
  await group.close();
}
`;
/** Makes the process take itself for one of another platform. */
const preload = `Object.defineProperty(process, 'platform', { value: process.env.FAKED_PLATFORM });`;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-fallback-'));
  for (const name of ['collectives', 'store']) {
    const to = join(folder, 'node_modules/@ringwise', name);
    mkdirSync(to, { recursive: true });
    for (const part of ['dist', 'package.json'])
      cpSync(join(packages, name, part), join(to, part), { recursive: true });
  }
  writeFileSync(join(folder, 'program.mjs'), program);
  writeFileSync(join(folder, 'platform.cjs'), preload);
});

/** Runs the program on two ranks. Returns what each printed, line by line. */
async function run(
  env: Record<string, string>,
  platforms = [process.platform, process.platform],
  envOfRank: readonly Record<string, string>[] = [],
) {
  const port = `${await freePort()}`;
  const ranks = platforms.map(async (platform, rank) => {
    const own = {
      ...{ PATH: process.env.PATH ?? '', RANK: `${rank}`, WORLD_SIZE: '2' },
      ...{
        MASTER_ADDR: '127.0.0.1',
        MASTER_PORT: port,
        FAKED_PLATFORM: platform,
        ...env,
        ...envOfRank[rank],
      },
    };
    const argv = ['--require', './platform.cjs', 'program.mjs'];
    const { stdout } = await promisify(execFile)(process.execPath, argv, { cwd: folder, env: own });
    return stdout.trim().split('\n');
  });
  return Promise.all(ranks);
}

describe('an installation without the native package', () => {
  it('uses tcp, and warns once: on rank 0', async () => {
    const [first, second] = await run({});
    const warnings = first!.filter((line) => line.startsWith('warning'));
    expect(first!.filter((line) => !line.startsWith('warning'))).toEqual(['tcp 3', 'tcp 3']);
    expect(warnings).toHaveLength(1);
    expect(second).toEqual(['tcp 3', 'tcp 3']);
    const missing = `@ringwise/collectives-${process.platform}-${process.arch} is not installed; it is an optional dependency`;
    expect(warnings[0]).toContain('warning RINGWISE_TCP_FALLBACK init: the ranks use the tcp backend,');
    expect(warnings[0]).toContain(missing);
  });

  it('says on Windows that there is no package, and works', async () => {
    const [first, second] = await run({}, ['win32', 'win32']);
    expect(second).toEqual(['tcp 3', 'tcp 3']);
    expect(first!.join()).toContain('no package is built for win32-');
  });

  it('says on macOS that the addon is untried, does not load it, and works', async () => {
    // An addon that cannot be loaded would be named in the warning.
    const [first, second] = await run({ RINGWISE_NATIVE_PATH: '/nowhere' }, ['darwin', 'darwin']);
    expect(second).toEqual(['tcp 3', 'tcp 3']);
    const warning = first!.find((line) => line.startsWith('warning'))!;
    expect(warning).toContain(
      'is built for macOS and has not been run there yet. RINGWISE_BACKEND=host uses it',
    );
    expect(warning).not.toContain('/nowhere');
  });

  it('loads the addon on macOS for a program that asks for it', async () => {
    const [first, second] = await run({ RINGWISE_BACKEND: 'host' }, ['darwin', 'darwin']);
    for (const output of [first, second])
      expect(output!.join()).toContain(`@ringwise/collectives-darwin-${process.arch} is not installed`);
    const { path } = findNative();
    const env = { RINGWISE_BACKEND: 'host', RINGWISE_NATIVE_PATH: dirname(path) };
    expect(await run(env, ['darwin', 'darwin'])).toEqual([
      ['host 3', 'host 3'],
      ['host 3', 'host 3'],
    ]);
  });

  it('says if the package is there but cannot be loaded', async () => {
    const name = `@ringwise/collectives-${process.platform}-${process.arch}`;
    const broken = join(folder, 'node_modules', name);
    onTestFinished(() => rmSync(broken, { recursive: true }));
    mkdirSync(broken);
    writeFileSync(join(broken, 'package.json'), JSON.stringify({ name }));
    writeFileSync(join(broken, 'coll.node'), 'no addon');
    const [first, second] = await run({});
    expect(second).toEqual(['tcp 3', 'tcp 3']);
    expect(first!.join()).toContain(`${name} is installed, but cannot be loaded`);
  });

  it('tells all ranks if only some of them fall back', async () => {
    const { path } = findNative();
    const outputs = await run({}, undefined, [{ RINGWISE_NATIVE_PATH: dirname(path) }, {}]);
    for (const output of outputs) {
      expect(output.join()).toMatch(/ERR_COLL_INIT init: rank [01] was started with backend (tcp|auto) but/);
      expect(output.join()).toContain('set RINGWISE_BACKEND=tcp for all ranks.');
    }
  });

  it('does not warn if tcp is chosen', async () => {
    expect(await run({ RINGWISE_BACKEND: 'tcp' })).toEqual([
      ['tcp 3', 'tcp 3'],
      ['tcp 3', 'tcp 3'],
    ]);
  });
});
