// Tests which buckets leave during one backward, when, and in which order.
import { type Backend, Group, loopback } from '@ringwise/collectives';
import { expect, it } from 'vitest';
import { type DistributedDataParallel, ddp } from '../../../src/index.ts';
import { onRanks, reasons, values } from '../../support/ranks.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

/** Makes groups that call `note` when an allReduce starts. */
function recordingGroups(size: number, note: (rank: number, count: number) => void): Group[] {
  return loopback(size).map((backend) => {
    const start: Backend['start'] = (operation, settle) => {
      if (operation.verb === 'allReduce') note(backend.rank, operation.buffer.count);
      return backend.start(operation, settle);
    };
    return new Group({ ...backend, start }, { name: 'recording', timeoutMs: 60_000 });
  });
}

const oneBucketEach = { bucketBytes: 1, firstBucketBytes: 1 };
const countsInPlanOrder = [3, 15, 5, 30, 6, 24];

it('launches a bucket from inside backward, as soon as it is full', async () => {
  const log: string[] = [];
  const groups = recordingGroups(2, (rank, count) => rank === 0 && log.push(`launch ${count}`));
  values(
    await onRanks(
      2,
      async (group) => {
        const net = new TinyMlp(1);
        const model = await ddp(net, { group, ...oneBucketEach });
        // These hooks are subscribed after ddp(), so they run after the reducer has seen the gradient.
        for (const { name, hooks } of net.autograd.weights)
          hooks.add(() => group.rank === 0 && log.push(name));
        net.loss(0, 2);
        net.autograd.backward();
        await model.finish();
      },
      groups,
    ),
  );
  expect(log).toEqual(
    ['b2', 'w2', 'b1', 'w1', 'b0', 'w0'].flatMap((name, i) => [`launch ${countsInPlanOrder[i]}`, name]),
  );
});

it('launches in index order when ranks report their gradients in different orders', async () => {
  const launched: number[][] = [[], [], [], []];
  const groups = recordingGroups(4, (rank, count) => launched[rank]!.push(count));
  const gradients = values(
    await onRanks(
      4,
      async (group) => {
        const rotate = <T>(list: T[]) => [...list.slice(group.rank), ...list.slice(0, group.rank)].reverse();
        const net = new TinyMlp(1, { reportOrder: rotate });
        const model = await ddp(net, { group, ...oneBucketEach });
        net.loss(3 * group.rank, 3);
        net.autograd.backward();
        await model.finish();
        return net.gradients();
      },
      groups,
    ),
  );
  expect(launched).toEqual(Array.from({ length: 4 }, () => countsInPlanOrder));
  for (const other of gradients) expect(other).toEqual(gradients[0]);
});

it('keeps gradients inside the buckets where the autograd can bind them', async () => {
  values(
    await onRanks(2, async (group) => {
      const net = new TinyMlp(1);
      using model = await ddp(net, { group });
      const [w0] = net.autograd.weights;
      const bucket = w0!.grad.buffer;
      for (const { grad } of net.autograd.weights) expect(grad.buffer).toBe(bucket);
      net.loss(0, 2);
      net.autograd.backward();
      await model.finish();
      expect(w0!.grad.buffer).toBe(bucket);
    }),
  );
});

it('binds a gradient again that the autograd has dropped', async () => {
  const gradients = values(
    await onRanks(2, async (group) => {
      const net = new TinyMlp(1);
      const model = await ddp(net, { group });
      const [w0] = net.autograd.weights;
      const bucket = w0!.grad.buffer;
      w0!.grad = new Float32Array(w0!.grad.length);
      net.loss(group.rank, 1);
      net.autograd.backward();
      await model.finish();
      expect(w0!.grad.buffer).toBe(bucket);
      return net.gradients();
    }),
  );
  expect(gradients[0]).toEqual(gradients[1]);
  expect(gradients[0]![0]!.some((value) => value !== 0)).toBe(true);
});

it('names the parameter that is reported ready twice, on every rank', async () => {
  const outcomes = await onRanks(2, async (group) => {
    const twice = <T>(list: T[]) => (group.rank === 1 ? [list[0]!, ...list] : list);
    const net = new TinyMlp(1, { reportOrder: twice });
    const model = await ddp(net, { group });
    net.loss(0, 2);
    net.autograd.backward();
    await model.finish();
  });
  const [other, faulty] = reasons(outcomes);
  expect(faulty).toMatchObject({ code: 'ERR_DDP_READY_TWICE', params: ['b2'], ranks: [1] });
  expect(other).toMatchObject({ code: 'ERR_COLL_ABORTED', peers: [1] });
  expect(other!.message).toContain('"b2" was reported ready twice');
});

for (const [what, again] of [
  ['finish()', (model) => model.finish()],
  ['a later finish()', (model) => Promise.resolve().then(() => model.finish())],
] as readonly (readonly [string, (model: DistributedDataParallel) => Promise<void>])[])
  it(`averages once if ${what} is called while finish() still runs`, async () => {
    const [once, twice] = await Promise.all(
      [false, true].map((isTwice) =>
        onRanks(2, async (group) => {
          const net = new TinyMlp(1);
          const model = await ddp(net, { group, bucketBytes: 100 });
          net.loss(group.rank, 1);
          model.addWeight(group.rank + 1);
          net.autograd.backward();
          await Promise.all([model.finish(), isTwice && again(model)]);
          return { gradients: net.gradients(), averages: model.averages };
        }).then(values),
      ),
    );
    expect(twice).toEqual(once);
    expect(twice![0]!.averages).toBe(1);
  });

it('fails finish() with the root cause on every rank when the group fails', async () => {
  const outcomes = await onRanks(3, async (group) => {
    const net = new TinyMlp(1);
    const model = await ddp(net, { group });
    net.loss(0, 2);
    if (group.rank === 2) {
      group.abort(new Error('disk full'));
      throw new Error('disk full');
    }
    net.autograd.backward();
    await model.finish();
  });
  const [first, second] = reasons(outcomes);
  for (const error of [first, second]) {
    expect(error).toMatchObject({ code: 'ERR_COLL_ABORTED', peers: [2] });
    expect(error!.message).toContain('disk full');
  }
});

it('does not send or copy anything in a group of one', async () => {
  const log: number[] = [];
  const groups = recordingGroups(1, (_, count) => log.push(count));
  values(
    await onRanks(
      1,
      async (group) => {
        const net = new TinyMlp(1);
        const alone = new TinyMlp(1);
        const memory = net.autograd.weights.map(({ grad }) => grad);
        const model = await ddp(net, { group });
        for (const each of [net, alone]) {
          each.loss(0, 2);
          each.autograd.backward();
        }
        await model.finish();
        expect(net.gradients()).toEqual(alone.gradients());
        for (const [i, { grad }] of net.autograd.weights.entries()) expect(grad).toBe(memory[i]);
      },
      groups,
    ),
  );
  expect(log).toEqual([]);
});
