// Tests DDP together with batch norm over all ranks on devices: their operations are in one order on all ranks, which
// one NCCL communicator runs, in eager steps and in captured ones.
import { hasTestDevice, values, withRanks } from '@ringwise/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { alone } from '../../support/device-sync-batch-norm-ranks.ts';
import { withoutNccl } from '../../support/without-nccl.ts';

const module = new URL('../../support/device-sync-batch-norm-ranks.ts', import.meta.url);
const steps = 300;
const timeoutMs = 280_000;

interface Trained {
  readonly state: Float32Array;
  readonly isReplayed: boolean;
  readonly verbs: string[];
}

describe.skipIf(!hasTestDevice)(
  `ddp with batch norm over all ranks${hasTestDevice ? '' : ' (skipped: there is no device)'}`,
  () => {
    beforeEach(({ skip }) => skip(withoutNccl !== '', withoutNccl));
    const run = async <T>(size: number, name: string, ...args: unknown[]): Promise<T[]> =>
      values<T>(await withRanks(size, module, name, { args, timeoutMs }));

    it(`trains for ${steps} steps as one process on the joined batch, eagerly and in captured steps`, {
      timeout: 2 * timeoutMs,
    }, async () => {
      const eager = await run<Trained>(2, 'train', steps, [4, 4], false);
      const captured = await run<Trained>(2, 'train', steps, [4, 4], true);
      expect(eager.map(({ isReplayed }) => isReplayed)).toEqual([false, false]);
      expect(captured.map(({ isReplayed }) => isReplayed)).toEqual([true, true]);
      for (const { state } of [...eager, ...captured]) expect(state).toEqual(eager[0]!.state);
      // The exchanges of batch norm (allGather, allReduce) and the buckets (allReduce) are operations of one group.
      for (const { verbs } of eager)
        expect(verbs).toEqual(expect.arrayContaining(['allGather', 'allReduce']));
      const expected = alone(steps, 2);
      for (const [i, value] of eager[0]!.state.entries())
        expect(Math.abs(value - expected[i]!)).toBeLessThan(1e-3);
    });

    it('trains with batches of different sizes, also in captured steps', { timeout: timeoutMs }, async () => {
      const eager = await run<Trained>(2, 'train', 20, [2, 6], false);
      const captured = await run<Trained>(2, 'train', 20, [2, 6], true);
      expect(captured.map(({ isReplayed }) => isReplayed)).toEqual([true, true]);
      for (const { state } of [...eager, ...captured]) expect(state).toEqual(eager[0]!.state);
    });

    it.each([
      ['skip', false],
      ['zero', true],
    ] as const)(
      'trains if ranks use different parameters (unused: %s, with weights: %s)',
      {
        timeout: timeoutMs,
      },
      async (unused, isWeighted) => {
        const [first, second] = await run<Float32Array>(2, 'trainUnused', 30, unused, isWeighted);
        expect(second).toEqual(first);
      },
    );
  },
);
