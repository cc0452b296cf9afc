// Tests models that share an engine: the backward of one must not affect the others.
import type { Group } from '@ringwise/collectives';
import { checkpoint, ones, scope, type Tensor } from '@ringwise/tensor';
import type { Sequential } from '@ringwise/tensor/nn';
import { describe, expect, it } from 'vitest';
import { type DdpOptions, ddp } from '../../../src/index.ts';
import { onRanks, reasons, values } from '../../support/ranks.ts';
import { lossOf, makeNet } from '../../support/tensor-mlp.ts';

const gradients = (net: Sequential) =>
  net.parameters().flatMap(({ grad }) => [...(grad!.dataSync() as Float32Array)]);

/** Returns the gradients of samples `from` to `from + 8` in one process. */
function expected(seed: number, from: number): number[] {
  const net = makeNet(seed);
  scope(() => lossOf((x) => net.forward(x), from, 8).backward());
  return gradients(net);
}

function expectClose(actual: readonly number[], wanted: readonly number[]): void {
  for (const [i, value] of actual.entries()) expect(value).toBeCloseTo(wanted[i]!, 5);
}

async function wrap(seed: number, group: Group, options: Partial<DdpOptions> = {}) {
  const net = makeNet(seed);
  const model = await ddp(net, { group, bucketBytes: 1024, ...options });
  /** Returns the loss of one rank's half of 8 samples. */
  const loss = (from: number) => lossOf(model.forward, from + 4 * group.rank, 4);
  return { net, model, loss };
}

/** Throws in the middle of a backward, when some gradients are ready and some buckets have left. */
function throwHalfway({ net, loss }: { net: Sequential; loss: (from: number) => Tensor }): void {
  const stop = net.parameters()[2]!.onGradReady(() => {
    throw new Error('halfway');
  });
  expect(() => scope(() => loss(0).backward())).toThrow('halfway');
  stop();
}

describe('after a backward of one model that threw', () => {
  it('another model is averaged as always', async () => {
    const ranks = values(
      await onRanks(2, async (group) => {
        const [a, b] = [await wrap(1, group), await wrap(2, group)];
        throwHalfway(a);
        for (let step = 0; step < 3; step++) {
          b.net.zeroGrad();
          scope(() => b.loss(8 * step).backward());
          await b.model.finish();
          expectClose(gradients(b.net), expected(2, 8 * step));
        }
        return gradients(b.net);
      }),
    );
    expect(ranks[1]).toEqual(ranks[0]);
  });

  it('its own forward says so, and it works again after close() and ddp()', async () => {
    const ranks = values(
      await onRanks(2, async (group) => {
        const a = await wrap(1, group);
        throwHalfway(a);
        expect(() => a.loss(0)).toThrow(/^forward: .*do not go on after a backward that threw/);
        a.model.close();
        a.net.zeroGrad();
        const model = await ddp(a.net, { group });
        scope(() => lossOf(model.forward, 4 * group.rank, 4).backward());
        await model.finish();
        return gradients(a.net);
      }),
    );
    expect(ranks[1]).toEqual(ranks[0]);
    expectClose(ranks[0]!, expected(1, 0));
  });

  it('its own next backward fails too, whatever it reaches', async () => {
    const outcomes = await onRanks(2, async (group) => {
      const { net, model, loss } = await wrap(1, group, { unused: 'zero' });
      throwHalfway({ net, loss });
      // Use only the first layer, which the backward that threw has not reached.
      net.layers[0]!.forward(ones([1, 20]))
        .sum()
        .backward();
      await model.finish();
    });
    for (const error of reasons(outcomes)) {
      expect(error).toMatchObject({ code: 'ERR_DDP_UNFINISHED' });
      expect(error.message).toMatch(/^backward: /);
    }
  });
});

it('take turns, each with its own steps', async () => {
  values(
    await onRanks(2, async (group) => {
      const [a, b] = [await wrap(1, group), await wrap(2, group)];
      for (let step = 0; step < 4; step++) {
        for (const [turn, { net, model, loss }] of [a, b, b, a].entries()) {
          net.zeroGrad();
          scope(() => loss(8 * step).backward());
          await model.finish();
          expectClose(gradients(net), expected(turn % 3 === 0 ? 1 : 2, 8 * step));
        }
      }
    }),
  );
});

const together: Record<string, (a: () => Tensor, b: () => Tensor) => void> = {
  'a backward that reaches both': (a, b) => a().add(b()).backward(),
  'a backward inside that of another, in a hook': (a, b) => {
    const [outer, inner] = [a(), b()];
    const scaled = outer.mul(1);
    scaled.registerHook(() => {
      inner.backward();
      return undefined;
    });
    scaled.backward();
  },
  'a backward that computes a part again': (a, b) => {
    const [first, second] = [a(), b()];
    checkpoint((x, y) => x.add(y), first, second).backward();
  },
};
for (const [name, run] of Object.entries(together))
  it(`average the gradients of ${name}`, async () => {
    const ranks = values(
      await onRanks(2, async (group) => {
        const [a, b] = [await wrap(1, group), await wrap(2, group)];
        for (let step = 0; step < 2; step++) {
          a.net.zeroGrad();
          b.net.zeroGrad();
          scope(() =>
            run(
              () => a.loss(0),
              () => b.loss(8),
            ),
          );
          await a.model.finish();
          await b.model.finish();
        }
        return [gradients(a.net), gradients(b.net)];
      }),
    );
    expect(ranks[1]).toEqual(ranks[0]);
    expectClose(ranks[0]![0]!, expected(1, 0));
    expectClose(ranks[0]![1]!, expected(2, 8));
  });
