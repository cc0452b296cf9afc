// Moves a wrapped model to another group, after a failure and without one. Gradients must be those of a model that was
// wrapped with that group.
import { type Group, loopbackGroups } from '@ringwise/collectives';
import { expect, it } from 'vitest';
import { type DdpOptions, ddp } from '../../../src/index.ts';
import { onRanks, reasons, values } from '../../support/ranks.ts';
import type { TinyOptions } from '../../support/tiny-autograd.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

const options: Partial<DdpOptions> = { bucketBytes: 100 };

/** Returns the averaged gradients of ranks that take one sample each, from `first` on. */
async function expected(size: number, first: number): Promise<number[][]> {
  const ranks = values(
    await onRanks(size, async (group) => {
      const net = new TinyMlp(1);
      const model = await ddp(net, { group, ...options });
      net.loss(first + group.rank, 1);
      net.autograd.backward();
      await model.finish();
      return net.gradients();
    }),
  );
  return ranks[0]!;
}

type Model = Awaited<ReturnType<typeof ddp<TinyMlp>>>;

async function gradientsOf(model: Model, first: number): Promise<number[][]> {
  const { module: net, group } = model;
  net.autograd.zeroGrad();
  net.loss(first + group.rank, 1);
  net.autograd.backward();
  await model.finish();
  return net.gradients();
}

/** Makes a model on each of `size` ranks whose group then fails in the middle of a backward. */
async function failed(size: number, tiny: TinyOptions = {}): Promise<Model[]> {
  const groups = loopbackGroups(size, { timeoutMs: 60_000 });
  const models = await Promise.all(
    groups.map((group) => ddp(new TinyMlp(group.rank, tiny), { group, ...options })),
  );
  const ends = models.map(async (model, rank) => {
    model.module.loss(rank, 1);
    if (rank === size - 1) {
      groups[rank]!.abort(new Error('killed')); // its gradients never come
      return;
    }
    model.module.autograd.backward();
    await expect(model.finish()).rejects.toMatchObject({ code: 'ERR_COLL_ABORTED' });
  });
  await Promise.all(ends);
  return models;
}

for (const [name, tiny] of Object.entries({ 'that binds': {}, 'that does not bind': { binds: false } })) {
  it(`averages over the survivors after a failure, with an autograd ${name}`, async () => {
    const [first, second] = await failed(3, tiny);
    const groups = loopbackGroups(2, { timeoutMs: 60_000 });
    const survivors = [first!, second!];
    const before = survivors.map(({ module }) => module.parameters());
    await Promise.all(survivors.map((model, rank) => model.rebind(groups[rank]!)));
    expect(survivors.map(({ module }) => module.parameters())).toEqual(before);
    for (const { module } of survivors)
      expect(
        module
          .gradients()
          .flat()
          .every((g) => g === 0),
      ).toBe(true);
    const gradients = await Promise.all(survivors.map((model) => gradientsOf(model, 5)));
    // The models began with rank 0's values, which are those of seed 0.
    const same = values(
      await onRanks(2, async (group) => {
        const net = new TinyMlp(0, tiny);
        const model = await ddp(net, { group, ...options });
        return gradientsOf(model, 5);
      }),
    );
    expect(gradients).toEqual(same);
  });
}

it('goes to a group of one, and back to more', async () => {
  for (const tiny of [{}, { binds: false }]) {
    const groups = loopbackGroups(2, { timeoutMs: 60_000 });
    const models = await Promise.all(groups.map((group) => ddp(new TinyMlp(1, tiny), { group, ...options })));
    await Promise.all(models.map((model) => gradientsOf(model, 0)));
    const alone = [loopbackGroups(1)[0]!, loopbackGroups(1)[0]!];
    await Promise.all(models.map((model, i) => model.rebind(alone[i]!)));
    for (const model of models) expect(await gradientsOf(model, 3)).toEqual(await expected(1, 3));
    const again = loopbackGroups(2, { timeoutMs: 60_000 });
    await Promise.all(models.map((model, i) => model.rebind(again[i]!)));
    const gradients = await Promise.all(models.map((model) => gradientsOf(model, 7)));
    for (const own of gradients) expect(own).toEqual(await expected(2, 7));
  }
});

it('drops what noSync has accumulated', async () => {
  const models = await failed(2);
  const [model] = models;
  model!.noSync(() => {
    model!.module.loss(0, 1);
    model!.module.autograd.backward();
  });
  await model!.rebind(loopbackGroups(1)[0]!);
  model!.module.loss(3, 1);
  model!.module.autograd.backward();
  await model!.finish();
  const net = new TinyMlp(0);
  net.loss(3, 1);
  net.autograd.backward();
  expect(model!.module.gradients()).toEqual(net.gradients());
});

it('is not disturbed by a finish() that fails afterwards', async () => {
  const groups = loopbackGroups(2, { timeoutMs: 60_000 });
  const [model] = await Promise.all(groups.map((group) => ddp(new TinyMlp(1), { group, ...options })));
  model!.module.loss(0, 1);
  model!.module.autograd.backward();
  const before = model!.finish();
  const alone = loopbackGroups(1)[0]!;
  await model!.rebind(alone); // the other rank has sent nothing
  groups[1]!.abort(new Error('killed'));
  await expect(before).rejects.toMatchObject({ code: 'ERR_COLL_ABORTED' });
  expect(alone.failure).toBeNull();
  expect(await gradientsOf(model!, 3)).toEqual(await expected(1, 3));
});

it('ends a noSync() that still runs, which later ones then do not notice', async () => {
  const model = await ddp(new TinyMlp(1), { group: loopbackGroups(1)[0]! });
  let settle = () => {};
  const before = model.noSync(() => new Promise<void>((resolve) => (settle = resolve)));
  await model.rebind(loopbackGroups(1)[0]!);
  settle();
  await before;
  model.noSync(() => {
    model.module.loss(0, 1);
    model.module.autograd.backward();
  });
  await model.finish();
  expect(model.averages).toBe(0);
});

it('is refused by all ranks if their models differ, and then changes nothing', async () => {
  const alone = [loopbackGroups(1)[0]!, loopbackGroups(1)[0]!];
  const models = await Promise.all([
    ddp(new TinyMlp(1), { group: alone[0]!, ...options }),
    ddp(new TinyMlp(1), { group: alone[1]!, bucketBytes: 1000 }),
  ]);
  const groups = loopbackGroups(2, { timeoutMs: 60_000 });
  const outcomes = await Promise.allSettled(models.map((model, i) => model.rebind(groups[i]!)));
  for (const error of reasons(outcomes))
    expect(error).toMatchObject({ code: 'ERR_DDP_MISMATCH', message: expect.stringContaining('rebind: ') });
  expect(models.map(({ group }) => group)).toEqual(alone);
  expect(await gradientsOf(models[0]!, 3)).toEqual(await expected(1, 3));
});

it('is refused after close(), and without a group', async () => {
  const group = loopbackGroups(1)[0]!;
  const model = await ddp(new TinyMlp(1), { group });
  await expect(model.rebind({} as Group)).rejects.toMatchObject({ code: 'ERR_DDP_INVALID' });
  model.close();
  await expect(model.rebind(group)).rejects.toMatchObject({ code: 'ERR_DDP_CLOSED' });
});
