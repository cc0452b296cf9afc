// Tests the mpi backend under the real mpirun of every MPI that is installed now and was installed when the
// addons were built.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type PoolStarter, Pools } from '@ringwise/testing';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { backendContract } from '../../../contract/index.ts';
import { kindsOfMpi } from '../../../src/backends/mpi.ts';
import type { Program } from '../../support/mpi-programs.ts';

const tsx = import.meta.resolve('tsx');
const oversubscribed = ['--allow-run-as-root', '--oversubscribe'];
const launchers = [
  ['Open MPI', 'openmpi', 'mpirun.openmpi', oversubscribed],
  ['MPICH', 'mpich', 'mpiexec.mpich', []],
] as const;

const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) if (child.exitCode !== null) running.delete(child);
});
afterAll(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Runs a script on `size` ranks. `script` is its path from this folder. */
function mpirun(command: string, flags: readonly string[], size: number, script: string, ...args: string[]) {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const { NODE_OPTIONS: _, ...inherited } = process.env;
  // Forbids ranks to read each other's memory, as some systems do. Messages above 4 KiB then take several steps.
  const env = { ...inherited, OMPI_MCA_btl_vader_single_copy_mechanism: 'none' };
  const argv = [...flags, '-n', `${size}`, process.execPath, '--import', tsx, path, ...args];
  const child = spawn(command, argv, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk));
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, text }));
  return { child, ended };
}

for (const [name, kind, command, flags] of launchers) {
  const isThere =
    spawnSync(command, ['--version']).status === 0 &&
    spawnSync(
      process.execPath,
      ['-e', `require('@ringwise/collectives-mpi-linux-${process.arch}/mpi-${kind}.node')`],
      {
        cwd: fileURLToPath(new URL('../../..', import.meta.url)),
      },
    ).status === 0;
  const ranks: PoolStarter = async (size, port) => {
    const { ended } = mpirun(command, flags, size, '../../support/mpi-rank.ts', `${port}`);
    return {
      ended: ended.then(({ code, text }) => {
        if (code !== 0) throw new Error(`${command} ended with ${code}: ${text}`);
      }),
    };
  };
  describe.skipIf(!isThere)(`${name}${isThere ? '' : ' (skipped: not installed)'}`, () => {
    const pools = new Pools(ranks);
    backendContract({ describe, it, expect }, `mpi (${name})`, {
      run: pools.run,
    });
    afterAll(pools.end, 120_000); // MPI ends when all ranks do

    const runProgram = async (program: Program) => {
      const folder = mkdtempSync(join(tmpdir(), 'ringwise-mpi-'));
      try {
        return await mpirun(command, flags, 2, '../../support/mpi-programs.ts', program, folder).ended;
      } finally {
        rmSync(folder, { recursive: true });
      }
    };

    it('lets ranks end by process.exit(), each at its time', async () => {
      expect(await runProgram('exit')).toEqual({ code: 0, text: 'still here\n' });
    });

    it('notices at once that a rank has ended without close()', async () => {
      const { code, text } = await runProgram('noClose');
      expect(text).toContain('allReduce: lost rank 1 (it has closed the group)');
      expect(code).toBe(0);
    });

    it('fails the job when a rank ends well in the middle of an operation', async () => {
      expect((await runProgram('exitPending')).code).not.toBe(0);
    });

    it('ends init() at its deadline when a rank hangs after the ranks have met', async () => {
      const { code, text } = await runProgram('stopsConnecting');
      expect(text).toContain(
        'ERR_COLL_TIMEOUT, init: MPI has made no communicator within 2000 ms, because rank 1 does not take part (group "world", rank 0 of 2)',
      );
      expect(code).not.toBe(0);
    });

    it('lets a rank end by process.exit() while another hangs before it connects', async () => {
      expect((await runProgram('exitsConnecting')).code).not.toBe(0);
    });

    it('ends the job with the code of a rank that has failed, though another goes on', async () => {
      expect((await runProgram('exitCode')).code).toBe(3);
    });

    it('takes what a rank has sent before it left', async () => {
      expect(await runProgram('lastWords')).toEqual({ code: 0, text: 'all taken\n' });
    });

    it('keeps the memory of a blocking call that failed while MPI used it', async () => {
      expect((await runProgram('lent')).text).toContain('ERR_COLL_ABORTED, kept\n');
    });

    it('refuses more elements than MPI counts, and goes on', async () => {
      const { code, text } = await runProgram('tooLong');
      expect([code, text.trim().split('\n').sort()]).toEqual([
        0,
        ['2', '2', 'ERR_COLL_UNSUPPORTED null null'],
      ]);
    });

    it('gives all ranks the same zero and the same NaN by min and max', async () => {
      const { text } = await runProgram('bits');
      const [min, max] = ['80000000 80000000 7fc00001 ffc00000', '0 0 7fc00001 ffc00000'];
      expect(text).toBe(`min ${JSON.stringify([min, min])}\nmax ${JSON.stringify([max, max])}\n`);
    });

    it('lets groups that wait for nothing sleep', async () => {
      const sleeps = Number((await runProgram('idle')).text);
      expect(sleeps).toBeLessThan(21 * 100); // in a second: 50 polls of each group, and the rest of the process
    });

    it('does not mix groups that two threads make at the same time', async () => {
      expect(await runProgram('twoThreads')).toEqual({ code: 0, text: 'apart\n' });
    });

    it('ends with the last thread that uses it, and tells one that comes later', async () => {
      const { code, text } = await runProgram('lateThread');
      // 'n' is UCX_MEM_EVENTS, which init() in the worker has set for the whole process.
      expect(text).toContain('n, init: MPI cannot be used: it has ended in this process');
      expect(code).toBe(0);
    });

    it('lasts as long as a thread uses it', async () => {
      expect(await runProgram('threads')).toEqual({ code: 0, text: '2\n2\n' });
    });
  });
}

describe('which MPI the mpi backend takes', () => {
  it('is the one whose launcher started the process', () => {
    expect(kindsOfMpi({ OMPI_COMM_WORLD_SIZE: '2' })).toEqual(['openmpi']);
    expect(kindsOfMpi({ PMI_SIZE: '2', PMI_RANK: '0' })).toEqual(['mpich']);
    expect(kindsOfMpi({})).toEqual(['openmpi', 'mpich']);
    expect(kindsOfMpi({ SLURM_PROCID: '0', PMIX_RANK: '0' })).toEqual(['openmpi']);
    expect(kindsOfMpi({ SLURM_PROCID: '0', PMI_RANK: '0' })).toEqual(['mpich']);
    expect(kindsOfMpi({ SLURM_PROCID: '0' })).toEqual(['openmpi', 'mpich']); // the body of an sbatch script
    expect(() => kindsOfMpi({ SLURM_PROCID: '0', SLURM_STEP_ID: '0' })).toThrow(
      'Call srun with --mpi=pmix (Open MPI) or --mpi=pmi2',
    );
  });

  it('is the one that RINGWISE_MPI names', () => {
    expect(kindsOfMpi({ RINGWISE_MPI: 'mpich', OMPI_COMM_WORLD_SIZE: '2' })).toEqual(['mpich']);
    expect(() => kindsOfMpi({ RINGWISE_MPI: 'lam' })).toThrow("expected openmpi or mpich, got 'lam'");
  });
});
