// Tests that a parameter has one wrapper at a time. Two wrappers would both average its gradient.
import { type Group, loopbackGroups } from '@ringwise/collectives';
import { scope } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { expect, it } from 'vitest';
import { ddp, type GradParam, gradParamsSymbol } from '../../../src/index.ts';
import { onRanks, reasons, values } from '../../support/ranks.ts';
import { lossOf, makeNet } from '../../support/tensor-mlp.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

/** Expects the same refusal on all ranks and returns it. */
async function refusal(body: (group: Group) => Promise<unknown>): Promise<Error & { code?: string }> {
  const errors = reasons(await onRanks(2, body));
  for (const error of errors) expect(error.message).toBe(errors[0]!.message);
  return errors[0]!;
}

it('refuses a model that is wrapped already, and names the wrapper and close()', async () => {
  const error = await refusal(async (group) => {
    const net = makeNet(group.rank);
    await ddp(net, { group });
    await ddp(net, { group });
  });
  expect(error).toMatchObject({ code: 'ERR_DDP_INVALID', params: ['0.weight'] });
  expect(error.message).toBe(
    'ddp: "0.weight" is wrapped already, by the ddp() of Sequential in group "loopback"; expected a parameter that no other ddp() averages, because two would change its gradient at the same time. Use that wrapper, or call its close() before.',
  );
});

const ways: Record<string, (group: Group) => Promise<unknown>> = {
  'the wrapper itself': async (group) => ddp(await ddp(makeNet(0), { group }), { group }),
  'a layer that another model has too': async (group) => {
    const shared = new Linear(2, 2);
    await ddp(new Sequential(new Linear(2, 2), shared), { group });
    return ddp(new Sequential(shared, new ReLU()), { group });
  },
  'a part of a wrapped model': async (group) => {
    const net = makeNet(0);
    await ddp(net, { group });
    return ddp(net.layers[2] as Linear, { group });
  },
  'a list of parameters': async (group) => {
    const params = new TinyMlp(1)[gradParamsSymbol]();
    await ddp(params, { group });
    return ddp(params, { group });
  },
  'parameters that are offered anew, known by their memory': async (group) => {
    const net = new TinyMlp(1);
    await ddp(net, { group });
    return ddp(net[gradParamsSymbol](), { group });
  },
  'a model that is being wrapped': async (group) => {
    const net = new TinyMlp(1);
    const [first, second] = await Promise.allSettled([ddp(net, { group }), ddp(net, { group })]);
    expect(first.status).toBe('fulfilled');
    if (second.status === 'rejected') throw second.reason;
  },
  'a model that another copy of the package has wrapped': async (group) => {
    const copy = (await import(String(new URL('../../../dist/index.js', import.meta.url)))) as {
      ddp: typeof ddp;
    };
    const net = makeNet(0);
    await copy.ddp(net, { group });
    return ddp(net, { group });
  },
};
for (const [name, way] of Object.entries(ways))
  it(`refuses ${name}`, async () => {
    const error = await refusal(way);
    expect(error).toMatchObject({ name: 'DdpError', code: 'ERR_DDP_INVALID' });
    expect(error.message).toMatch(/^ddp: .* is wrapped already, by the ddp\(\) of .* close\(\) before\./);
  });

it('tells all ranks where one of them wraps twice, and the first wrapper goes on', async () => {
  const outcomes = await onRanks(3, async (group) => {
    const [net, other] = [new TinyMlp(1), new TinyMlp(2)];
    const model = await ddp(net, { group });
    await expect(ddp(group.rank === 1 ? net : other, { group })).rejects.toMatchObject({
      code: 'ERR_DDP_INVALID',
      ranks: [1],
      message: expect.stringContaining('is wrapped already, by the ddp() of TinyMlp'),
    });
    net.loss(group.rank, 1);
    net.autograd.backward();
    await model.finish();
    // The parameters that the refused call had claimed on the other ranks are free again.
    await ddp(other, { group });
    return net.gradients();
  });
  const gradients = values(outcomes);
  for (const other of gradients) expect(other).toEqual(gradients[0]);
});

it('wraps again after close(), and after a ddp() that failed', async () => {
  const ranks = values(
    await onRanks(2, async (group) => {
      const net = makeNet(3);
      const failing = ddp(net, { group, bucketBytes: 1 + group.rank });
      await expect(failing).rejects.toMatchObject({ code: 'ERR_DDP_MISMATCH' });
      const first = await ddp(net, { group });
      first.close();
      first.close();
      const model = await ddp(net, { group });
      first.close(); // frees nothing that the next wrapper has claimed
      await expect(ddp(net, { group })).rejects.toThrow('is wrapped already');
      scope(() => lossOf(model.forward, 4 * group.rank, 4).backward());
      await model.finish();
      return net.parameters().flatMap(({ grad }) => [...(grad!.dataSync() as Float32Array)]);
    }),
  );
  expect(ranks[1]).toEqual(ranks[0]);
});

it('refuses a parameter that a list has twice', async () => {
  const [group] = loopbackGroups(1) as [Group];
  const params = new TinyMlp(1)[gradParamsSymbol]();
  const again: GradParam = Object.defineProperty({ ...params[0]! }, 'name', { value: 'again' });
  await expect(ddp([...params, again], { group })).rejects.toMatchObject({
    code: 'ERR_DDP_INVALID',
    params: ['w0', 'again'],
    message: expect.stringContaining('"w0" and "again" are the same parameter'),
  });
  // The refused call has claimed no parameter of the list.
  (await ddp(params, { group })).close();
  await group.close();
});

it('refuses a list of something else', async () => {
  const [group] = loopbackGroups(1) as [Group];
  for (const list of [makeNet(0).parameters(), ['w'], [null]] as unknown as GradParam[][]) {
    await expect(ddp(list, { group })).rejects.toMatchObject({
      code: 'ERR_DDP_INVALID',
      message: expect.stringContaining('Pass the model itself'),
    });
  }
  await group.close();
});
