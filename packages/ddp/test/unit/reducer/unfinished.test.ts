import type { Group } from '@ringwise/collectives';
import { expect, it } from 'vitest';
import { ddp } from '../../../src/index.ts';
import { onRanks, values } from '../../support/ranks.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Runs `train` on two ranks that cannot block, and returns the warnings. */
async function warningsOf(train: (group: Group) => Promise<void>): Promise<string[]> {
  const warnings: string[] = [];
  const note = (warning: Error & { code?: string }) =>
    void warnings.push(`${warning.code}: ${warning.message}`);
  process.on('warning', note);
  values(await onRanks(2, train));
  process.off('warning', note);
  return warnings.filter((text) => text.startsWith('RINGWISE_DDP_UNFINISHED'));
}

/** Trains a step, and calls finish() or lets a turn pass. */
const trains = (finishes: boolean) => async (group: Group) => {
  const net = new TinyMlp(1);
  const model = await ddp(net, { group });
  net.loss(group.rank, 1);
  net.autograd.backward();
  if (finishes) await model.finish();
  await turn();
  await turn();
  await model.finish();
  model.close();
};

it('warns of a backward that is not finished in its turn', async () => {
  const warnings = await warningsOf(trains(false));
  expect(warnings.length).toBe(2);
  expect(warnings[0]).toContain('The backend loopback cannot block');
});

it('does not warn if finish() was called', async () => {
  expect(await warningsOf(trains(true))).toEqual([]);
});

/** Trains a step of two models, for rank 0 some turns earlier, and awaits finish() of `count` models at once. */
const trainsTwo = (count: number) => async (group: Group) => {
  const nets = [new TinyMlp(1), new TinyMlp(2)];
  const models = [await ddp(nets[0]!, { group }), await ddp(nets[1]!, { group })];
  for (let i = 0; i < 5 * group.rank; i++) await turn();
  for (const net of nets) net.loss(group.rank, 1);
  for (const net of nets) net.autograd.backward();
  for (const model of models.slice(0, count)) await model.finish();
  await turn();
  await turn();
  for (const model of models) {
    await model.finish();
    model.close();
  }
};

it('does not warn if finish() of several models is awaited one after another', async () => {
  expect(await warningsOf(trainsTwo(2))).toEqual([]);
});

it('warns if finish() of only one of several models was called', async () => {
  expect((await warningsOf(trainsTwo(1))).length).toBe(2);
});

it('refuses to average while a noSync() runs that was not awaited', async () => {
  const outcomes = await onRanks(2, async (group) => {
    const net = new TinyMlp(1);
    const model = await ddp(net, { group });
    const backward = () => {
      net.loss(group.rank, 1);
      net.autograd.backward();
    };
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const pending = model.noSync(async () => {
      backward();
      await ended;
    });
    const sentence = (where: string) =>
      `${where}: noSync() has given a promise on rank ${group.rank} that is not settled and was not awaited`;
    expect(backward).toThrow(sentence('backward'));
    await expect(model.finish()).rejects.toThrow(sentence('finish'));
    end();
    await pending;
    backward();
    await model.finish();
    await model.noSync(async () => {
      await turn();
      backward();
      await model.finish(); // averages nothing inside noSync
    });
    model.close();
    return model.averages;
  });
  expect(values(outcomes)).toEqual([1, 1]);
});
