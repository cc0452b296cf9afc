// What a process of an elastic job takes from its launcher, and what it says under launchers that end all ranks.
import { afterEach, expect, test, vi } from 'vitest';
import { planJoin } from '../../src/membership/options.ts';

const place = { RANK: '1', WORLD_SIZE: '4', LOCAL_RANK: '1', LOCAL_WORLD_SIZE: '4' };
const store = { MASTER_ADDR: '127.0.0.1', MASTER_PORT: '29500', TORCHELASTIC_USE_AGENT_STORE: 'True' };
const torchrun = { ...place, ...store, TORCHELASTIC_RUN_ID: 'job' };
const ringwise = { ...torchrun, RINGWISE_RUN_ID: 'job', RINGWISE_SECRET: 'a secret' };
const elastic = { ...ringwise, RINGWISE_SLOT: '1', RINGWISE_INCARNATION: '2', RINGWISE_MIN_RANKS: '3' };

afterEach(() => vi.restoreAllMocks());
const warnings = () => vi.spyOn(process, 'emitWarning').mockImplementation(() => {});

test('ringwise run --elastic gives the slot, how often it was started, and the fewest members', () => {
  const warned = warnings();
  const { self, settings, store } = planJoin({}, elastic);
  expect(self).toMatchObject({ id: '1.2', slot: 1 });
  expect(settings).toMatchObject({ size: 4, min: 3 });
  expect(store).toEqual({ host: '127.0.0.1', port: 29500, secret: 'a secret' });
  expect(planJoin({ min: 2 }, elastic).settings.min).toBe(2);
  expect(warned).not.toHaveBeenCalled();
});

test('without --elastic a warning says that a lost rank stops all', () => {
  const warned = warnings();
  expect(planJoin({}, ringwise).settings).toMatchObject({ size: 4, min: 1 });
  expect(warned.mock.calls).toEqual([[expect.stringContaining('it was started without --elastic')]]);
});

test('torchrun is refused', () => {
  expect(() => planJoin({}, torchrun)).toThrow(
    expect.objectContaining({
      code: 'ERR_ELASTIC_USE',
      message: expect.stringContaining('torchrun stops all ranks when one is lost'),
    }),
  );
});

test('mpirun and srun, which serve no store, are refused', () => {
  const openmpi = { OMPI_COMM_WORLD_RANK: '1', OMPI_COMM_WORLD_SIZE: '4', OMPI_COMM_WORLD_LOCAL_RANK: '1' };
  const slurm = {
    SLURM_PROCID: '1',
    SLURM_NTASKS: '4',
    SLURM_LOCALID: '1',
    SLURM_STEP_ID: '0',
    SLURM_JOB_ID: '7',
  };
  for (const env of [openmpi, slurm]) {
    expect(() => planJoin({}, env)).toThrow(
      expect.objectContaining({
        code: 'ERR_ELASTIC_STORE',
        message: expect.stringContaining('npx ringwise run --elastic'),
      }),
    );
  }
});
