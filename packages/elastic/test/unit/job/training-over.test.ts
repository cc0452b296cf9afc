// Processes that come to a job when its training is over: they end without an error and without a part in it.
import { ArrayDataset } from '@ringwise/data';
import { type ElasticJob, elastic } from '@ringwise/elastic';
import { MemoryStore, PrefixStore, type Store } from '@ringwise/store';
import { fromHost, manualSeed, scope } from '@ringwise/tensor';
import { Linear } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { afterEach, expect, it } from 'vitest';
import { jobPrefix, wishKey } from '../../../src/membership/keys.ts';

const runId = 'over';
const deadlines = { settleMs: 40_000, stallMs: 40_000, joinTimeoutMs: 40_000, connectMs: 40_000 };
const dataset = new ArrayDataset({ x: { data: new Float32Array(8).fill(0.5), shape: [1] } });

const warnings: string[] = [];
const note = ({ message, code }: Error & { code?: string }) => {
  if (code === 'RINGWISE_TRAINING_OVER') warnings.push(message);
};

afterEach(() => {
  process.off('warning', note);
  warnings.length = 0;
});

interface Trainer {
  readonly job: ElasticJob;
  /** Joins the job. */
  readonly begin: () => Promise<unknown>;
  /** Trains to the end, or for so many steps. Resolves with the number of steps that it has run. */
  readonly train: (mostSteps?: number) => Promise<number>;
}

async function trainer(store: Store): Promise<Trainer> {
  const job = await elastic({ ...deadlines, store, runId, size: 1, leaveOn: null });
  manualSeed(1);
  const net = new Linear(1, 1);
  const optimizer = new SGD(net.parameters(), { lr: 0.1 });
  const loader = job.loader(dataset, { globalBatch: 2, microBatch: 1 });
  let model: { forward: typeof net.forward };
  return {
    job,
    begin: async () => {
      model = await job.ddp(net, { optimizer, loader });
    },
    train: async (mostSteps = Number.POSITIVE_INFINITY) => {
      let count = 0;
      for await (const { run } of job.steps(loader, { epochs: 2 })) {
        await run(({ x }) =>
          scope(() => {
            const loss = model.forward(fromHost(x.data, x.shape)).mean();
            loss.backward();
            return loss.item();
          }),
        );
        if (++count === mostSteps) break;
      }
      return count;
    },
  };
}

const seenWish = (store: Store) => new PrefixStore(jobPrefix(runId), store).wait([wishKey(2)]);

it('a process that comes after the last step gets no part, and its loop has no steps', async () => {
  process.on('warning', note);
  const store = new MemoryStore();
  const founder = await trainer(store);
  await founder.begin();
  expect(await founder.train()).toBe(8);
  const late = await trainer(store);
  const joins = late.begin();
  await seenWish(store);
  await founder.job.close();
  await joins;
  expect(late.job.hasLeft).toBe(true);
  expect(await late.train()).toBe(0);
  late.job.leave();
  expect(() => late.job.group).toThrow(
    'group: the training was over when this process started, so it has no group; expected a check of job.hasLeft first',
  );
  await late.job.close();
  await expect
    .poll(() => warnings)
    .toEqual([
      'ddp: the training is over: its members have ended after step 8, before those that joined had its state. This process takes no part in it. A new job needs another run id.',
    ]);
});

it('a process fails to join if the others were told to leave before the end', async () => {
  const store = new MemoryStore();
  const founder = await trainer(store);
  await founder.begin();
  const late = await trainer(store);
  expect(await founder.train(1)).toBe(1);
  founder.job.leave();
  const joins = late.begin().then(
    () => 'joined',
    ({ code }: { readonly code: string }) => code,
  );
  await seenWish(store);
  await founder.job.close();
  expect(await joins).toBe('ERR_ELASTIC_ENDED');
  await late.job.close();
});
