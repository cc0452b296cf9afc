// Race 24: the device of one rank fails in a step of an elastic job. If it reports an error, its rank ends with that
// error, so that its slot can start again; the devices of the others go on. If it ends no call any more, no rank can
// tell whose device that is: the step is tried again, and the job ends when it has failed three times.
import { hasTestDevice, isTestGpu, startRanks, values } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import { type Trained, train } from '../../support/device-elastic-ranks.ts';

const module = new URL('../../support/device-elastic-ranks.ts', import.meta.url);

describe.skipIf(!hasTestDevice || isTestGpu)('a failure of one device', () => {
  it('that reports an error ends its rank only', { timeout: 120_000 }, async () => {
    const args = [{ size: 3, broken: 1, at: 3, backend: 'nccl' }];
    const started = await startRanks(3, module, 'train', { args, timeoutMs: 110_000 });
    const results = await started.results;
    expect(results[1]!.error).toMatchObject({ code: 'ERR_COLL_SYSTEM' });
    const ends = values<Trained>(results.filter(({ rank }) => rank !== 1));
    const alone = await train(0, null, ends[0]!.finalSteps);
    for (const { state, sizes, backend, finalSteps } of ends) {
      expect([sizes, backend, finalSteps]).toEqual([[3, 2], 'nccl', alone.finalSteps]);
      expect(state).toEqual(ends[0]!.state);
      const apart = Math.max(...state.map((value, i) => Math.abs(value - alone.state[i]!)));
      expect(apart).toBeLessThan(1e-4);
    }
  });

  it('that ends no call ends the job with a sentence on all ranks', { timeout: 120_000 }, async () => {
    const plan = { size: 3, stalled: 1, at: 3, backend: 'nccl', timeoutMs: 3_000, settleMs: 20_000 };
    const started = await startRanks(3, module, 'train', { args: [plan], timeoutMs: 110_000 });
    for (const { error } of await started.results) {
      expect(error).toMatchObject({ code: 'ERR_ELASTIC_ENDED' });
      expect(error!.message).toContain('step 3 has failed 3 times in the same way: ERR_COLL_TIMEOUT');
    }
  });
});
