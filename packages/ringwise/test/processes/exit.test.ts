// Tests how ranks end under the launcher when nothing fails.
import { hasTestDevice, isTestGpu } from '@ringwise/testing';
import { expect, it } from 'vitest';
import { numbersFrom, runJob, startJob } from '../support/command.ts';

it('a script that forgets close() ends by itself', async () => {
  const { exitCode, stdout, stderr } = await runJob(2, 'forgets-close.ts');
  expect(stdout.trim().split('\n').sort()).toEqual(['[0] sum 3', '[1] sum 3']);
  expect(stderr).toBe('');
  expect(exitCode).toBe(0);
});

it('ranks that exit with operations pending exit without waiting for the deadline, with their own code', async () => {
  const { exitCode, stderr } = await runJob(2, 'exits-pending.ts');
  expect(stderr).toBe('');
  expect(exitCode).toBe(0);
});

it('timers fire on a rank that waits in a barrier', async () => {
  const job = startJob(2, 'idles.ts');
  expect(await job.exitCode).toBe(0);
  const ticks = await numbersFrom(job, 'ticks', 2);
  expect(ticks.get(0)).toBeGreaterThanOrEqual(20);
});

// Runs on the software device only, because a GPU's driver cannot be made late.
it.skipIf(!hasTestDevice || isTestGpu).each(['downloading', 'reducing'])(
  'a thread may end before the driver of its device calls back (%s)',
  async (name) => {
    const env = { RINGWISE_SOFTWARE_CUDA_CALL_MS: '400' };
    const job = startJob(1, 'ends-pending-on-device.ts', [name], env);
    expect(await job.exitCode).toBe(0);
    expect(job.out).toEqual({ stdout: '[0] went on\n', stderr: '' });
  },
);

it('the members of an elastic job do not wait for one that has ended before it joined', async () => {
  const job = startJob(3, 'founds-elastic-job.ts', [], { PET_ELASTIC: '1' });
  expect(await job.exitCode).toBe(0);
  for (const slot of [0, 2]) expect(job.out.stdout).toContain(`[${slot}] view 0 has 0.0 2.0\n`);
});
