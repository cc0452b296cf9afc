// Checks that training on N ranks equals training on one with an N times larger batch, for every set of optional
// members of the autograd.
import { describe, expect, it } from 'vitest';
import { type DdpOptions, ddp } from '../../../src/index.ts';
import { largestDifference, onRanks, values } from '../../support/ranks.ts';
import type { TinyOptions } from '../../support/tiny-autograd.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

describe('equals one process on the joined batch, step by step', () => {
  const engines: Record<string, TinyOptions> = {
    'that binds gradients and tells when backward ends': {},
    'that does not bind gradients': { binds: false },
    'that does not tell when backward ends': { tellsEnd: false },
    'with nothing but the mandatory members': { binds: false, tellsEnd: false },
  };
  const layouts: Record<string, Partial<DdpOptions>> = {
    'default buckets': {},
    'one bucket per parameter': { bucketBytes: 1, firstBucketBytes: 1 },
    'small buckets': { bucketBytes: 80, firstBucketBytes: 40 },
  };
  for (const [engine, options] of Object.entries(engines))
    for (const [layout, limits] of Object.entries(layouts))
      it(`an autograd ${engine}, ${layout}`, async () => {
        const batch = 2;
        const alone = new TinyMlp(1);
        const expected: number[][] = [];
        for (let step = 0; step < 6; step++) {
          alone.autograd.zeroGrad();
          alone.loss(step * 4 * batch, 4 * batch);
          alone.autograd.backward();
          alone.autograd.step(0.5);
          expected.push(alone.parameters());
        }
        const histories = values(
          await onRanks(4, async (group) => {
            const net = new TinyMlp(1, options);
            const model = await ddp(net, { group, ...limits });
            const history: number[][] = [];
            for (let step = 0; step < 6; step++) {
              net.autograd.zeroGrad();
              net.loss((step * 4 + group.rank) * batch, batch, model.forward);
              net.autograd.backward();
              await model.finish();
              net.autograd.step(0.5);
              history.push(net.parameters());
            }
            return history;
          }),
        );
        for (const history of histories) {
          expect(history).toEqual(histories[0]);
          expect(largestDifference(history.flat(), expected.flat())).toBeLessThan(1e-5);
        }
      });
});
