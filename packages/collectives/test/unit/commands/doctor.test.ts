// Tests this package's part of `ringwise doctor`. packages/ringwise, which has the launcher, tests the command itself.
import { describe, expect, it } from 'vitest';
import { launcherFinding, mpiFinding, ncclFinding } from '../../../src/commands/doctor.ts';

describe('what init() would see', () => {
  it.each([
    [{}, 'ok', /^no launcher in the environment/],
    [
      { RANK: '1', WORLD_SIZE: '2', MASTER_ADDR: 'gpu-a', MASTER_PORT: '29500' },
      'ok',
      /^rank 1 of 2 by env, which meet at gpu-a:29500$/,
    ],
    [{ PMI_RANK: '0', PMI_SIZE: '1' }, 'ok', /^rank 0 of 1 by pmi$/],
    [{ RANK: '1' }, 'wrong', /got RANK '1', WORLD_SIZE not set$/],
    [{ WORLD_SIZE: '4' }, 'wrong', /got RANK not set, WORLD_SIZE '4'$/],
    [{ RANK: '1', PMI_RANK: '0', PMI_SIZE: '1' }, 'ok', /by pmi$/],
    [{ RANK: '2', WORLD_SIZE: '2' }, 'wrong', /expected 0 <= rank < size, got rank 2, size 2$/],
    [{ RANK: '0', WORLD_SIZE: '2', MASTER_ADDR: 'gpu-a' }, 'wrong', /^MASTER_PORT is not set/],
  ])('of %j is %s', (env, state, text) => {
    const finding = launcherFinding(env);
    expect(finding).toMatchObject({ name: 'init()', state, text: expect.stringMatching(text) });
    expect(typeof finding.fix).toBe(state === 'wrong' ? 'string' : 'undefined');
  });

  it('comes with what to do about it', () => {
    expect(launcherFinding({ RANK: '0', WORLD_SIZE: '2', MASTER_ADDR: 'gpu-a' }).fix).toBe(
      'Set MASTER_PORT to the same value for all ranks.',
    );
    expect(launcherFinding({ RANK: '2', WORLD_SIZE: '2' }).fix).toBe(
      'Put the variables of the launcher right, or unset them.',
    );
  });
});

describe('NCCL', () => {
  const usable = {
    ...{ devices: 2, driver: '', library: '/lib/libnccl.so.2', version: '2.28.9' },
    ...{ reducesFloat8: true, reason: '' },
  };

  it('is named with its version', () => {
    expect(ncclFinding(usable)).toEqual({
      name: 'nccl',
      state: 'ok',
      text: '2.28.9 (/lib/libnccl.so.2) for 2 devices',
    });
  });

  it('is wrong if it is too old for several groups', () => {
    const reason = '/lib/libnccl.so.2 is version 2.26.6; expected NCCL 2.27 or newer';
    expect(ncclFinding({ ...usable, version: '2.26.6', reason })).toMatchObject({
      state: 'wrong',
      text: reason,
      fix: expect.stringContaining('Install NCCL 2.27 or newer'),
    });
  });

  it('is not needed without a device', () => {
    const driver = 'libcuda.so.1 was not found';
    expect(ncclFinding({ ...usable, devices: 0, driver }).state).toBe('note');
  });
});

describe('the mpi backend', () => {
  it('is wrong where it cannot be loaded', () => {
    expect(mpiFinding({ RINGWISE_MPI: 'lam' })).toMatchObject({
      state: 'wrong',
      text: expect.stringContaining("'lam'"),
    });
    expect(mpiFinding({ SLURM_PROCID: '0', SLURM_STEP_ID: '0' }).fix).toContain('--mpi=pmix');
  });
});
