import { expect, it } from 'vitest';
import { assertInSync, inSync } from '../../../src/index.ts';
import { onRanks, reasons, values } from '../../support/ranks.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

it('holds for replicas that are equal bit for bit, NaN included', async () => {
  const answers = values(
    await onRanks(3, async (group) => {
      const net = new TinyMlp(1);
      net.autograd.weights[0]!.data[0] = Number.NaN;
      await assertInSync(net, group);
      return inSync(net, group);
    }),
  );
  expect(answers).toEqual([true, true, true]);
});

it('names the first parameter that differs and the ranks, in the same sentence everywhere', async () => {
  const outcomes = await onRanks(3, async (group) => {
    const net = new TinyMlp(1);
    if (group.rank === 2) net.layers[1]![0].data[3]! += 2 ** -24;
    if (group.rank === 2) net.layers[2]![0].data[0] = 0;
    expect(await inSync(net, group)).toBe(false);
    await assertInSync(net, group);
  });
  const errors = reasons(outcomes);
  expect(errors[0]).toMatchObject({ code: 'ERR_DDP_NOT_IN_SYNC', params: ['w1'], ranks: [2] });
  expect(errors[0]!.message).toMatch(
    /^assertInSync: parameter "w1" differs between ranks: ranks 0, 1 have "w1" \(sha256 \w{16}\); rank 2 has "w1" \(sha256 \w{16}\)\./,
  );
  for (const error of errors) expect(error.message).toBe(errors[0]!.message);
});

it('tells 0 from -0', async () => {
  const answers = values(
    await onRanks(2, async (group) => {
      const net = new TinyMlp(1);
      net.layers[0]![1].data[0] = group.rank === 0 ? 0 : -0;
      return inSync(net, group);
    }),
  );
  expect(answers).toEqual([false, false]);
});
