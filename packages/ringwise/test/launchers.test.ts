// init() under launchers of others: the real ones, where they are installed.
import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findSlurm, type Slurm, startSlurm } from './slurm.ts';

let folder: string;
let rank: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-launchers-'));
  rank = join(folder, 'rank.mjs');
  writeFileSync(
    rank,
    `import { init } from '${import.meta.resolve('@ringwise/collectives')}';
     const group = await init({ timeoutMs: 20_000 });
     const x = new Float64Array([group.rank + 1]);
     await group.allReduce(x);
     console.log('<' + [group.via, group.rank, group.size, x[0]].join() + '>');
     await group.close();`,
  );
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Runs a command to its end; what the ranks said, sorted, and what else there was if it failed. */
function said(argv: readonly string[], env: NodeJS.ProcessEnv = {}) {
  return new Promise<{ ranks: string[]; text: string }>((resolve) => {
    const { NODE_OPTIONS: _, ...own } = process.env;
    const options = { env: { ...own, ...env }, timeout: 60_000, killSignal: 'SIGKILL', cwd: folder } as const;
    execFile(argv[0]!, argv.slice(1), options, (_error, stdout, stderr) => {
      const ranks = [...stdout.matchAll(/<(.*?)>/g)].map(([, line]) => line!).sort();
      resolve({ ranks, text: stdout + stderr });
    });
  });
}

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return `${port}`;
}

const has = (command: string, ...args: string[]) => spawnSync(command, args).status === 0;
const missing = (isThere: boolean) => (isThere ? '' : ' (skipped: not installed)');

const openmpi = has('mpirun.openmpi', '--version');
describe.skipIf(!openmpi)(`under Open MPI${missing(openmpi)}`, () => {
  it('ranks take their places from it', { timeout: 90_000 }, async () => {
    const flags = ['--allow-run-as-root', '--oversubscribe', '-n', '3'];
    const { ranks, text } = await said(['mpirun.openmpi', ...flags, process.execPath, rank]);
    expect(ranks, text).toEqual(['openmpi,0,3,6', 'openmpi,1,3,6', 'openmpi,2,3,6']);
  });
});

const mpich = has('mpiexec.mpich', '--version');
describe.skipIf(!mpich)(`under MPICH${missing(mpich)}`, () => {
  it('ranks take their places from it, and need only a port', { timeout: 90_000 }, async () => {
    const argv = ['mpiexec.mpich', '-n', '2', process.execPath, rank];
    const { ranks, text } = await said(argv, { MASTER_PORT: await freePort() });
    expect(ranks, text).toEqual(['pmi,0,2,3', 'pmi,1,2,3']);
  });

  it('ranks say what is missing', { timeout: 90_000 }, async () => {
    const { ranks, text } = await said(['mpiexec.mpich', '-n', '2', process.execPath, rank]);
    expect(ranks).toEqual([]);
    expect(text).toContain('MASTER_PORT is not set and pmi does not tell where rank 0 is');
  });
});

// Debian 12's torchrun 1.13 starts nothing under its own Python 3.11.
const torch = has('torchrun', '--standalone', '--no_python', 'true') ? torchVersion() : null;
function torchVersion(): string | null {
  const code = 'import torch; print(torch.__version__)';
  const found = ['/usr/bin/python3', 'python3'].map((python) =>
    spawnSync(python, ['-c', code], { encoding: 'utf8' }),
  );
  return found.find(({ status }) => status === 0)?.stdout.trim() ?? null;
}
describe.skipIf(torch === null)(`under torchrun ${torch ?? '(skipped: none that works)'}`, () => {
  it.skipIf(torch?.startsWith('1.'))("ranks meet in its agent's store", { timeout: 90_000 }, async () => {
    const flags = ['--standalone', '--nproc_per_node', '2', '--no_python'];
    const { ranks, text } = await said(['torchrun', ...flags, process.execPath, rank]);
    expect(ranks, text).toEqual(['torchrun,0,2,3', 'torchrun,1,2,3']);
  });

  it('shows the error of a rank that records it, with its stack', { timeout: 90_000 }, async () => {
    const file = join(folder, 'fails.mjs');
    writeFileSync(
      file,
      `import { recordErrors } from '${import.meta.resolve('@ringwise/launch')}';
       recordErrors();
       throw new RangeError('token 50304');`,
    );
    const { text } = await said(['torchrun', '--standalone', '--no_python', process.execPath, file]);
    expect(text).toContain('RangeError: token 50304');
    expect(text).toMatch(/traceback : .*RangeError: token 50304/s);
    expect(text).toContain('fails.mjs:3');
  });
});

const slurmPaths = findSlurm();
describe.skipIf(slurmPaths === null)(`under Slurm${missing(slurmPaths !== null)}`, () => {
  let slurm: Slurm | undefined;
  afterEach(async () => {
    await slurm?.close();
    slurm = undefined;
  });

  it('ranks take their places from srun', { timeout: 120_000 }, async () => {
    slurm = await startSlurm(slurmPaths!, folder);
    const { ranks, text } = await said([slurm.srun, '-N2', '-n4', process.execPath, rank], {
      ...slurm.env,
      MASTER_ADDR: '127.0.0.1',
    });
    expect(ranks, text).toEqual([0, 1, 2, 3].map((each) => `slurm,${each},4,10`));
  });

  it('one launcher per node makes one job', { timeout: 120_000 }, async () => {
    slurm = await startSlurm(slurmPaths!, folder);
    const command = new URL('../bin/ringwise.js', import.meta.url).pathname;
    const where = ['--nnodes', '2', '--nproc-per-node', '2', '--master-port', await freePort()];
    const argv = [slurm.srun, '-N2', '-n2', process.execPath, command, 'run', ...where, rank];
    const { ranks, text } = await said(argv, { ...slurm.env, RINGWISE_SECRET: 'of the test' });
    expect(ranks, text).toEqual([0, 1, 2, 3].map((each) => `ringwise,${each},4,10`));
  });
});
