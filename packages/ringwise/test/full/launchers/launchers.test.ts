// Tests init() under the launchers of other projects. Uses the real launchers and skips those that are not installed.
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '@ringwise/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findSlurm, type Slurm, startSlurm } from '../../support/slurm.ts';

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
     const { via, rank, size, localRank, localSize, hosts } = group;
     console.log('<' + [via, rank, size, x[0]].join() + '>');
     // All are on this machine, also where the launcher takes it for several nodes.
     if (localRank !== rank || localSize !== size || hosts.length !== 1) throw new Error("place " + localRank);
     await group.close();`,
  );
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Runs a command to its end. Returns the lines that the ranks printed, sorted, and the whole output for messages. */
function said(argv: readonly string[], env: NodeJS.ProcessEnv = {}, timeout = 60_000) {
  return new Promise<{ ranks: string[]; text: string }>((resolve) => {
    const { NODE_OPTIONS: _, ...own } = process.env;
    const options = { env: { ...own, ...env }, timeout, killSignal: 'SIGKILL', cwd: folder } as const;
    execFile(argv[0]!, argv.slice(1), options, (_error, stdout, stderr) => {
      const ranks = [...stdout.matchAll(/<(.*?)>/g)].map(([, line]) => line!).sort();
      resolve({ ranks, text: stdout + stderr });
    });
  });
}

/** Writes the program of the ranks once more as TypeScript that Node.js cannot run by removing types. */
function inTypeScript(): string {
  const file = join(folder, 'rank.mts');
  const source = readFileSync(rank, 'utf8').replace(
    'timeoutMs: 20_000',
    'timeoutMs: Wait.Deadline as number',
  );
  writeFileSync(file, `enum Wait { Deadline = 20_000 }\n${source}`);
  return file;
}

const has = (command: string, ...args: string[]) => spawnSync(command, args).status === 0;
const missing = (isThere: boolean) => (isThere ? '' : ' (skipped: not installed)');

/** Tells whether the mpi backend was built for this MPI. */
function hasMpi(kind: string): boolean {
  const addon = `@ringwise/collectives-mpi-linux-${process.arch}/mpi-${kind}.node`;
  try {
    createRequire(import.meta.resolve('@ringwise/collectives')).resolve(addon);
    return true;
  } catch {
    return false;
  }
}

const tsx = ['--import', import.meta.resolve('tsx')];
const example = fileURLToPath(new URL('../../../../../examples/mnist-ddp.ts', import.meta.url));

const openmpi = has('mpirun.openmpi', '--version');
describe.skipIf(!openmpi)(`under Open MPI${missing(openmpi)}`, () => {
  it('ranks take their places from it', { timeout: 90_000 }, async () => {
    const flags = ['--allow-run-as-root', '--oversubscribe', '-n', '3'];
    const { ranks, text } = await said(['mpirun.openmpi', ...flags, process.execPath, rank]);
    expect(ranks, text).toEqual(['openmpi,0,3,6', 'openmpi,1,3,6', 'openmpi,2,3,6']);
  });

  it('ranks may be TypeScript, by tsx', { timeout: 90_000 }, async () => {
    const flags = ['--allow-run-as-root', '--oversubscribe', '-n', '2'];
    const { ranks, text } = await said([
      'mpirun.openmpi',
      ...flags,
      process.execPath,
      ...tsx,
      inTypeScript(),
    ]);
    expect(ranks, text).toEqual(['openmpi,0,2,3', 'openmpi,1,2,3']);
  });
});

const mpich = has('mpiexec.mpich', '--version');
describe.skipIf(!mpich)(`under MPICH${missing(mpich)}`, () => {
  it('ranks take their places from it, and need only a port', { timeout: 90_000 }, async () => {
    const argv = ['mpiexec.mpich', '-n', '2', process.execPath, rank];
    const { ranks, text } = await said(argv, { MASTER_PORT: `${await freePort()}` });
    expect(ranks, text).toEqual(['pmi,0,2,3', 'pmi,1,2,3']);
  });

  it.skipIf(!hasMpi('mpich'))("ranks can have MPI's own collectives", { timeout: 90_000 }, async () => {
    const argv = ['mpiexec.mpich', '-n', '2', process.execPath, rank];
    const { ranks, text } = await said(argv, { MASTER_PORT: `${await freePort()}`, RINGWISE_BACKEND: 'mpi' });
    expect(ranks, text).toEqual(['pmi,0,2,3', 'pmi,1,2,3']);
  });

  it('ranks say what is missing', { timeout: 90_000 }, async () => {
    const { ranks, text } = await said(['mpiexec.mpich', '-n', '2', process.execPath, rank]);
    expect(ranks).toEqual([]);
    expect(text).toContain('MASTER_PORT is not set and pmi does not tell where rank 0 is');
  });
});

// Runs the mpi backend under both MPIs. MPICH's ranks need a port at which they meet.
for (const [name, kind, isThere, command, wantsPort] of [
  ['Open MPI', 'openmpi', openmpi, ['mpirun.openmpi', '--allow-run-as-root', '--oversubscribe'], false],
  ['MPICH', 'mpich', mpich, ['mpiexec.mpich'], true],
] as const) {
  const runs = isThere && hasMpi(kind);
  it.skipIf(!runs)(
    `the example with DDP runs on the collectives of ${name}${missing(runs)}`,
    { timeout: 180_000 },
    async () => {
      const port = wantsPort ? { MASTER_PORT: `${await freePort()}` } : {};
      const argv = [...command, '-n', '2', process.execPath, ...tsx, example];
      const { text } = await said(argv, { ...port, RINGWISE_BACKEND: 'mpi' }, 150_000);
      expect(text).toContain('replicas in sync: 2 ranks hold the same bits');
    },
  );
}

// RINGWISE_TEST_TORCHRUN names the torchrun to use; the one in PATH comes second. The torchrun of Debian 12 (torch
// 1.13) starts no ranks under Debian's own Python 3.11.
const torchrun = [process.env.RINGWISE_TEST_TORCHRUN ?? '', 'torchrun'].find(
  (name) => name && has(name, '--standalone', '--no_python', 'true'),
);
const torch = torchrun ? torchVersion(torchrun) : null;

/** Returns the Python that the first line of the command's file names. */
function pythonOf(command: string): string {
  const path = command.includes('/')
    ? command
    : spawnSync('which', [command], { encoding: 'utf8' }).stdout.trim();
  return /^#!\s*(\S+)/.exec(readFileSync(path, 'utf8'))?.[1] ?? 'python3';
}

function torchVersion(command: string): string {
  const python = pythonOf(command);
  return spawnSync(python, ['-c', 'import torch; print(torch.__version__)'], {
    encoding: 'utf8',
  }).stdout.trim();
}
describe.skipIf(torch === null)(`under torchrun ${torch ?? '(skipped: none that works)'}`, () => {
  const run = (...argv: string[]) => said([torchrun!, '--standalone', ...argv]);

  it.skipIf(torch?.startsWith('1.'))("ranks meet in its agent's store", { timeout: 90_000 }, async () => {
    const { ranks, text } = await run('--nproc_per_node', '2', '--no_python', process.execPath, rank);
    expect(ranks, text).toEqual(['torchrun,0,2,3', 'torchrun,1,2,3']);
  });

  it.skipIf(torch?.startsWith('1.'))('ranks may be TypeScript, by tsx', { timeout: 90_000 }, async () => {
    const argv = ['--nproc_per_node', '2', '--no_python', process.execPath, ...tsx, inTypeScript()];
    const { ranks, text } = await run(...argv);
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
    const { text } = await run('--no_python', process.execPath, file);
    expect(text).toContain('RangeError: token 50304');
    expect(text).toMatch(/traceback : .*RangeError: token 50304/s);
    expect(text).toContain('fails.mjs:3');
  });

  it.skipIf(torch?.startsWith('1.'))(
    'ranks start again with it, under keys of their own',
    { timeout: 90_000 },
    async () => {
      const file = join(folder, 'again.mjs');
      writeFileSync(
        file,
        `import { init } from '${import.meta.resolve('@ringwise/collectives')}';
       const round = process.env.TORCHELASTIC_RESTART_COUNT;
       const group = await init({ timeoutMs: 20_000 });
       const x = new Float64Array([group.rank + 1]);
       await group.allReduce(x);
       console.log('<' + [round, group.rank, x[0]].join() + '>');
       if (round === '0' && group.rank === 1) process.exit(7);
       await group.barrier();
       await group.close();`,
      );
      const flags = ['--nproc_per_node', '2', '--max_restarts', '1', '--no_python'];
      const { ranks, text } = await run(...flags, process.execPath, file);
      expect(ranks, text).toEqual(['0,0,3', '0,1,3', '1,0,3', '1,1,3']);
    },
  );

  it.skipIf(torch?.startsWith('1.'))(
    'Python and Node ranks meet in one job',
    { timeout: 90_000 },
    async () => {
      const mixed = fileURLToPath(new URL('../../../../../examples/mixed/rank.sh', import.meta.url));
      const argv = [torchrun!, '--standalone', '--nproc_per_node', '3', '--no_python', 'sh', mixed];
      const { text } = await said(argv, { PYTHON_EXEC: pythonOf(torchrun!) });
      expect(text).toContain('rank 0 (Python) got [100, 400]');
      expect(text).toContain('rank 2 (Node) squared 20');
    },
  );
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
    const command = new URL('../../../bin/ringwise.js', import.meta.url).pathname;
    const where = ['--nnodes', '2', '--nproc-per-node', '2', '--master-port', `${await freePort()}`];
    const argv = [slurm.srun, '-N2', '-n2', process.execPath, command, 'run', ...where, rank];
    const { ranks, text } = await said(argv, { ...slurm.env, RINGWISE_SECRET: 'of the test' });
    expect(ranks, text).toEqual([0, 1, 2, 3].map((each) => `ringwise,${each},4,10`));
  });

  // These pairs are the protocols that Debian's Slurm and Debian's MPIs have in common.
  for (const [mpi, kind] of [
    ['pmix', 'openmpi'],
    ['pmi2', 'mpich'],
  ] as const) {
    it.skipIf(!hasMpi(kind))(
      `the example with DDP runs on ${kind} by srun --mpi=${mpi}`,
      { timeout: 240_000 },
      async () => {
        slurm = await startSlurm(slurmPaths!, folder);
        const where = {
          MASTER_ADDR: '127.0.0.1',
          MASTER_PORT: `${await freePort()}`,
          RINGWISE_BACKEND: 'mpi',
        };
        const argv = [slurm.srun, `--mpi=${mpi}`, '-N2', '-n2', process.execPath, ...tsx, example];
        const { text } = await said(argv, { ...slurm.env, ...where }, 180_000);
        expect(text).toContain('replicas in sync');
      },
    );
  }
});
