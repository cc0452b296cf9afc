import { expect, it } from 'vitest';
import { assertInSync, gradParamsSymbol, inSync } from '../../../src/index.ts';
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

it('refuses on all ranks what one rank cannot read', async () => {
  const outcomes = await onRanks(2, async (group) => {
    const net = new TinyMlp(1);
    const params = [...net[gradParamsSymbol]()];
    const value = { ...params[2]!.value, host: null, device: { kind: 'cuda', index: 0 } as const };
    if (group.rank === 1) params[2] = { ...params[2]!, name: 'w1', value };
    await inSync(params, group);
  });
  for (const error of reasons(outcomes)) {
    expect(error).toMatchObject({ code: 'ERR_DDP_INVALID', params: ['w1'], ranks: [1] });
    expect(error.message).toMatch(
      /^inSync: "w1" is in cuda memory, which JavaScript cannot read; .* \(on rank 1\)$/,
    );
  }
});

it('names the element of a list that has no values, such as a tensor', async () => {
  const lists = [[new Float32Array(2)], [null], [{ name: 'w' }], new Float32Array(1)];
  for (const list of lists) {
    const outcomes = await onRanks(2, (group) => assertInSync(list as never, group));
    for (const error of reasons(outcomes))
      expect(error).toMatchObject({
        code: 'ERR_DDP_INVALID',
        message: expect.stringMatching(
          /assertInSync: element 0 of the list: expected an object with name and value, got another one\. Pass the model itself/,
        ),
      });
  }
});
