// Runs `ringwise doctor` with all packages: with addons and two real ranks, and in an installation without addons.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { command } from '../support/command.ts';

interface Found {
  readonly name: string;
  readonly state: string;
  readonly text: string;
  readonly fix?: string;
}

function doctor(bin: string, env: Record<string, string> = {}, cwd = process.cwd()) {
  const { NODE_PATH: _ofThisWorkspace, ...rest } = process.env;
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, 'doctor', '--json'], {
    cwd,
    env: { ...rest, ...env },
    encoding: 'utf8',
    timeout: 240_000,
  });
  const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: Found[] };
  return { status, ok, stderr, found: (name: string) => findings.find((each) => each.name === name) };
}

it('finds the addons and measures two ranks', () => {
  const { status, ok, stderr, found } = doctor(command);
  expect({ status, ok, stderr }).toEqual({ status: 0, ok: true, stderr: '' });
  for (const name of ['coll.node', 'tensor.node']) {
    expect(found(name)).toMatchObject({ state: 'ok', text: expect.stringContaining(`/${name}`) });
  }
  const [, gigabytes, microseconds] =
    /^allReduce by host: ([\d.]+) GB\/s at 16 MiB, ([\d.]+) us at 4 bytes$/.exec(found('two ranks')!.text)!;
  expect(Number(gigabytes)).toBeGreaterThan(0);
  expect(Number(microseconds)).toBeGreaterThan(0);
  expect(found('cuda')!.text).not.toBe('');
});

it('has exit code 1 if init() would fail', () => {
  const { status, ok, found } = doctor(command, { RANK: '0', WORLD_SIZE: '2' });
  expect({ status, ok }).toEqual({ status: 1, ok: false });
  expect(found('init()')).toMatchObject({ state: 'wrong', fix: expect.stringContaining('Set MASTER_ADDR') });
  // The two ranks that doctor starts get their own environment, so these variables do not disturb them.
  expect(found('two ranks')!.state).toBe('ok');
});

it('measures by host where mpirun would start the ranks', () => {
  const { found } = doctor(command, { RINGWISE_BACKEND: 'mpi' });
  expect(found('two ranks')).toMatchObject({
    state: 'ok',
    text: expect.stringContaining('allReduce by host'),
  });
  expect(found('mpi')).toBeDefined(); // its state is 'wrong' on a host without MPI
});

it('names every path where it looked for a missing addon', () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'ringwise-doctor-')));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const scope = join(folder, 'node_modules/@ringwise');
  const packages = fileURLToPath(new URL('../../..', import.meta.url));
  for (const name of ['launch', 'collectives', 'tensor']) {
    mkdirSync(join(scope, name), { recursive: true });
    for (const part of ['dist', 'package.json'])
      cpSync(join(packages, name, part), join(scope, name, part), { recursive: true });
  }
  cpSync(join(packages, 'launch/bin'), join(scope, 'launch/bin'), { recursive: true });
  for (const name of ['store', 'formats']) symlinkSync(join(packages, name), join(scope, name));
  const bin = join(scope, 'launch/bin/ringwise.js');
  const { status, found } = doctor(bin, { RINGWISE_NATIVE_PATH: '/no/such/folder' }, folder);
  expect(status).toBe(1);
  for (const [name, family] of [
    ['coll.node', 'collectives'],
    ['tensor.node', 'tensor'],
  ] as const) {
    const { state, text, fix } = found(name)!;
    expect(state).toBe('wrong');
    expect(text).toContain(`/no/such/folder/${name} (`);
    const platformPackage = `@ringwise/${family}-${process.platform}-${process.arch}`;
    expect(text).toContain(`${platformPackage}/${name} (`);
    expect(fix).toMatch(new RegExp(`^Install ${platformPackage},.*npm run build`));
  }
  const ranks = found('two ranks')!;
  expect([ranks.state, ranks.text]).toEqual(['ok', expect.stringMatching(/^allReduce by tcp: /)]);
});
