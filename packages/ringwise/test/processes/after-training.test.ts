// What becomes of an elastic job whose ranks work on after their last step.
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { startLauncher } from '../support/command.ts';

async function outcomeOf(what: 'fail' | 'end') {
  const flags = ['--elastic', '--nproc-per-node', '3'];
  const { out, exitCode } = startLauncher(randomUUID(), flags, 'after-training.ts', [what]);
  return { exitCode: await exitCode, ...out };
}

it('a rank that is started again too late ends, and the others are left alone', async () => {
  const { exitCode, stdout, stderr } = await outcomeOf('end');
  expect(exitCode, stderr).toBe(0);
  expect(stderr).toContain('ringwise: starting rank 1 again after SIGKILL');
  expect(stderr).toContain('ddp: the training is over: its members have ended after step 10');
  expect(stdout).toContain('1.1 came too late');
  for (const id of ['0.0', '2.0']) expect(stdout).toContain(`${id} has evaluated`);
});

it('a rank that fails after its last step ends the job with its failure', async () => {
  const { exitCode, stdout, stderr } = await outcomeOf('fail');
  expect(exitCode, stderr).toBe(1);
  expect(stderr).toMatch(/ringwise: rank 0 of 3 failed \(exit code 1\).*\n {2}Error: the disk is full/);
  for (const id of ['1.0', '2.0']) expect(stdout).toContain(`${id} has evaluated`);
});
