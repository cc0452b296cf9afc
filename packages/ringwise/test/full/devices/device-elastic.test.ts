// Tests elastic jobs whose state lies on devices: a rank is lost in the middle of a step, and a rank joins.
import { hasTestDevice, values, withRanks } from '@ringwise/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { deviceOf, type Plan, type Trained, train } from '../../support/device-elastic-ranks.ts';
import { withoutNccl } from '../../support/without-nccl.ts';

const module = new URL('../../support/device-elastic-ranks.ts', import.meta.url);
const timeoutMs = 110_000;
const tolerance = 1e-4;

describe.skipIf(!hasTestDevice)(
  `an elastic job on devices${hasTestDevice ? '' : ' (skipped: there is none)'}`,
  () => {
    describe.each(['nccl', 'auto', 'host'])('%s', (backend) => {
      beforeEach(({ skip }) => skip(backend === 'nccl' && withoutNccl !== '', withoutNccl));

      async function ends(plan: Omit<Plan, 'backend'>, processes: number): Promise<Trained[]> {
        const results = await withRanks(processes, module, 'train', {
          args: [{ ...plan, backend }],
          timeoutMs,
        });
        if (plan.victim !== undefined) expect(results[plan.victim]!.signal).toBe('SIGKILL');
        const ended = values<Trained>(results.filter(({ rank }) => rank !== plan.victim));
        const alone = await train(0, null, ended[0]!.finalSteps);
        if (backend === 'nccl') expect(ended[0]!.backend).toBe('nccl');
        for (const { state, finalSteps } of ended) {
          expect(finalSteps).toBe(alone.finalSteps);
          expect(state).toEqual(ended[0]!.state);
          const apart = Math.max(...state.map((value, i) => Math.abs(value - alone.state[i]!)));
          expect(apart).toBeLessThan(tolerance);
        }
        return ended;
      }

      it('goes on without a killed rank: each sample counts once', { timeout: 120_000 }, async () => {
        const ended = await ends({ size: 3, victim: 1, at: 3 }, 3);
        expect(ended.map(({ device }) => device)).toEqual([0, 2].map(deviceOf));
        for (const { sizes } of ended) expect(sizes).toEqual([3, 2]);
      });

      it('gives its state to a process that joins', { timeout: 120_000 }, async () => {
        const ended = await ends({ size: 1, joiner: 1 }, 2);
        expect(ended.map(({ sizes }) => sizes)).toEqual([[1, 2], [2]]);
      });

      it('goes on with a single rank that is left', { timeout: 120_000 }, async () => {
        const [last] = await ends({ size: 2, victim: 0, at: 2 }, 2);
        expect(last!.sizes).toEqual([2, 1]);
      });
    });
  },
);
