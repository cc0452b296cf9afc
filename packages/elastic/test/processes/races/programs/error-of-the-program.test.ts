// Race 19: an error of the program on one rank, or the same one on all, is not taken for a loss. The step does not run
// again; the job ends, and each rank reports one error.
import { expect, it } from 'vitest';
import type { Fault } from '../../../fixtures/train.ts';
import { planOf, run } from '../../../support/jobs.ts';

it('ends on all ranks if the program of one throws', async () => {
  const faults: Record<number, Fault> = { 1: { step: 3, at: 'forward', do: 'throw' } };
  const results = await run(3, planOf(3, { faults }));
  for (const { rank, error } of results) {
    expect(error!.message).toContain('the program of process 1 failed');
    if (rank !== 1) expect(error).toMatchObject({ code: 'ERR_COLL_ABORTED' });
  }
});

it('ends if the programs of all ranks throw: each reports its own error', async () => {
  const faults = Object.fromEntries(
    [0, 1, 2].map((rank): [number, Fault] => [rank, { step: 3, at: 'forward', do: 'throw' }]),
  );
  const results = await run(3, planOf(3, { faults }));
  for (const { rank, error, stdout } of results) {
    // A rank whose own error came later than the end of the group may say that first.
    expect(error!.message).toMatch(/the program of process \d failed/);
    // The step was not tried a second time, and no view followed.
    expect(stdout.split('\n').filter((line) => line.startsWith('view'))).toHaveLength(1);
    expect(error!.message, `rank ${rank}`).not.toContain('has failed 3 times');
  }
});
