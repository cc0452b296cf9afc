// Runs `ringwise doctor` as a user does: on a host in order, on a host that lacks something, and in a folder whose
// installed packages bring checks of their own.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Finding } from '../../src/doctor/finding.ts';
import { nodeFinding, portsFinding, schedulerFinding } from '../../src/doctor/host-checks.ts';
import { ringwiseVariables } from '../../src/doctor/known-variables.ts';
import { finished, script } from '../support/command.ts';

const bin = fileURLToPath(new URL('../../bin/ringwise.js', import.meta.url));

async function examined(env: Record<string, string> = {}) {
  const { exitCode, stdout, stderr } = await finished(['doctor', '--json'], env);
  const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: Finding[] };
  return { exitCode, ok, stderr, found: (name: string) => findings.find((each) => each.name === name) };
}

function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name));
}

/** Installs a package whose `./doctor` export adds checks to `ringwise doctor`. */
function install(name: string, source: string): void {
  const manifest = JSON.stringify({ type: 'module', exports: { './doctor': './doctor.js' } });
  script(`node_modules/${name}/package.json`, manifest);
  script(`node_modules/${name}/doctor.js`, source);
  script(
    `node_modules/${name}/rank.js`,
    'export default (rank) => [rank, process.env.RANK, process.env.WORLD_SIZE];',
  );
}

describe('ringwise doctor', () => {
  it('finds a host in order', async () => {
    const { exitCode, ok, stderr, found } = await examined({ OMP_NUM_THREADS: '3' });
    expect({ exitCode, ok, stderr }).toEqual({ exitCode: 0, ok: true, stderr: '' });
    expect(found('node')).toMatchObject({
      state: 'ok',
      text: expect.stringContaining(process.versions.modules),
    });
    expect(found('ranks')!.text).toMatch(/^\d+ cores, \d+ GPUs.*starts \d+, OMP_NUM_THREADS=3 each$/);
    expect(found('limits')!.text).toMatch(/^open files (\d+|unlimited) \(ulimit -n\), locked memory/);
    expect(found('loopback')!.state).toBe('ok');
  });

  it('counts the GPUs that are visible', async () => {
    const { found } = await examined({ CUDA_VISIBLE_DEVICES: '1,3' });
    expect(found('ranks')!.text).toMatch(/ 2 GPUs \(CUDA_VISIBLE_DEVICES=1,3\): .* starts 2,/);
  });

  it('names variables that nothing reads', async () => {
    const env = {
      RINGWISE_TIMEOUT: '5',
      PET_NPROCPERNODE: '2',
      RINGWISE_ALGO_ALLREDUCE: 'ring',
      PET_NNODES: '1',
    };
    const { exitCode, found } = await examined(env);
    expect(exitCode).toBe(0);
    expect(found('variables')).toEqual({
      name: 'variables',
      state: 'note',
      text:
        'RINGWISE_TIMEOUT is not known; did you mean RINGWISE_TIMEOUT_MS?\n' +
        'PET_NPROCPERNODE is not known; did you mean PET_NPROC_PER_NODE?',
    });
    expect((await examined({ PET_NNODES: '1' })).found('variables')).toBeUndefined();
  });

  it('knows all variables that the packages read', () => {
    const packages = fileURLToPath(new URL('../../../', import.meta.url));
    const sources = readdirSync(packages).flatMap((name) => filesIn(join(packages, name, 'src')));
    const read = sources.flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/env\.(RINGWISE_\w+)/g)].map(([, name]) => name!),
    );
    expect(read.length).toBeGreaterThan(10);
    expect(read.filter((name) => !ringwiseVariables.includes(name))).toEqual([]);
  });

  it('says what is wrong and how to mend it, and ends with 1', () => {
    const argv = ['-c', 'ulimit -n 300; exec "$0" "$@"', process.execPath, bin, 'doctor'];
    const { status, stdout } = spawnSync('/bin/sh', argv, { encoding: 'utf8', timeout: 120_000 });
    expect(stdout).toMatch(/^wrong {2}limits +open files 300 .*\n +To do: Raise the hard limit, too: /m);
    expect(stdout).toMatch(/\nWrong: limits\.\n$/);
    expect(status).toBe(1);
  });

  it('runs the checks of installed packages, which may start ranks', async () => {
    install(
      '@ringwise/collectives',
      `export async function* examine({ spawn }) {
         const results = await spawn(new URL('./rank.js', import.meta.url), { nprocs: 2 });
         yield { name: 'own', state: 'ok', text: JSON.stringify(results) };
       }`,
    );
    const { exitCode, found } = await examined();
    expect(found('own')!.text).toBe('[[0,"0","2"],[1,"1","2"]]');
    expect(found('@ringwise/collectives')).toBeUndefined();
    expect(exitCode).toBe(0);
  });

  it('goes on when the checks of a package fail', async () => {
    install('@ringwise/tensor', `export async function* examine() { throw new Error('no such symbol'); }`);
    const { exitCode, ok, found } = await examined();
    expect(found('@ringwise/tensor')).toMatchObject({
      state: 'wrong',
      text: 'its checks failed: no such symbol',
      fix: expect.stringContaining('npm install'),
    });
    expect({ exitCode, ok }).toEqual({ exitCode: 1, ok: false });
  });

  it('explains itself, and a wrong argument', async () => {
    const help = await finished(['doctor', '--help']);
    expect(help).toMatchObject({ exitCode: 0, stderr: '' });
    expect(help.stdout).toMatch(/^ringwise doctor \[--json\]\n/);
    expect(await finished(['doctor', '--jsn'])).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: 'ringwise doctor: unknown argument --jsn; did you mean --json? See ringwise doctor --help.\n',
    });
  });
});

describe('checks', () => {
  it.each([
    ['18.20.0', 'wrong'],
    ['20.18.3', 'wrong'],
    ['20.19.0', 'ok'],
    ['22.1.0', 'ok'],
  ])('Node %s is %s', (node, state) => {
    expect(nodeFinding({ ...process.versions, node }).state).toBe(state);
  });

  it('notes that the kernel shares cores among sessions', () => {
    expect([...schedulerFinding('1')]).toMatchObject([{ name: 'scheduler', state: 'note' }]);
    for (const setting of ['0', null]) expect([...schedulerFinding(setting)]).toEqual([]);
  });

  it('name a port that is taken', async () => {
    const server = createServer().listen(0);
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    expect(await portsFinding([port])).toMatchObject({
      state: 'note',
      text: expect.stringContaining(`cannot listen on ${port} (EADDRINUSE)`),
    });
  });
});
