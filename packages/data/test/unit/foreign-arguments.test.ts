// Arguments as PyTorch's classes take them: the error says what to pass here instead.
import { expect, test } from 'vitest';
import {
  ArrayDataset,
  BatchSampler,
  BlockRandomSampler,
  DataLoader,
  DistributedSampler,
  RandomSampler,
  SequentialSampler,
  shard,
} from '../../src/index.ts';

const dataset = { length: 4, get: (index: number) => index };
/** Has the members of a group that the checks look at. */
const group = { name: 'world', rank: 0, size: 2, allReduce: () => {} };
const tensor = { shape: [4, 2], dataSync: () => new Float32Array(8), data: async () => new Float32Array(8) };

const failing = (call: () => unknown, message: string, code = 'ERR_DATA_ARGUMENT'): void =>
  expect(call).toThrow(expect.objectContaining({ code, message: expect.stringContaining(message) }));

test('tensors in place of fields', () => {
  const Fields = ArrayDataset as unknown as new (...args: unknown[]) => unknown;
  const next = 'got a tensor. Pass { x: { data: x.dataSync(), shape: x.shape.slice(1) } }';
  failing(
    () => new Fields(tensor, tensor),
    `fields: expected one object of { data, shape } by name, ${next}`,
  );
  failing(() => new Fields({ x: tensor }), `field "x": expected { data, shape } with a typed array, ${next}`);
});

test('data sets with other members than length and get', () => {
  class Samples {
    __len__(): number {
      return 3;
    }
    __getitem__(): number {
      return 0;
    }
  }
  const load = (source: unknown) => () => new DataLoader(source as typeof dataset);
  failing(
    load(new Samples()),
    'an object with length and get(index), or an iterable, got an object with __len__,',
  );
  failing(load({ length: 3, getItem: () => 0 }), 'got an object with length, getItem.');
  failing(
    load({ length: () => 3, get: () => 0 }),
    'length of the data set: expected an integer of at least 0, got a f',
  );
  failing(load({ length: 3, get: 0 }), 'get of the data set: expected a function, got 0.');
  failing(load({}), 'got an object without members.');
  failing(load(Promise.resolve([1])), 'got a promise, which needs an await.');
});

test('a data set in place of its length', () => {
  const wrong = dataset as unknown as number;
  const next = 'got an object. Pass the length of the data set: dataset.length.';
  failing(() => new DistributedSampler(wrong, { replicas: 2, rank: 0 }), next);
  failing(() => new RandomSampler(wrong), next);
  failing(() => new SequentialSampler(wrong), next);
});

test('a sampler of several ranks without the rank, or with a group', () => {
  const Sampler = DistributedSampler as unknown as new (...args: unknown[]) => unknown;
  const next = 'Pass { replicas: group.size, rank: group.rank }.';
  failing(() => new Sampler(4), `replicas: expected an integer of at least 1, got undefined. ${next}`);
  failing(
    () => new Sampler(4, { replicas: 2 }),
    `rank: expected an integer from 0 to 1, got undefined. ${next}`,
  );
  failing(() => new Sampler(4, 2, 0), `options are a number; expected an object. ${next}`);
  const instead = 'expected { replicas: group.size, rank: group.rank } as options, got the group itself.';
  failing(() => new Sampler(4, group), instead);
  failing(() => shard([1, 2], group as never), instead);
  failing(() => new BlockRandomSampler([4], group as never), instead);
});

test('members of PyTorch that loaders and samplers do not have', () => {
  const loader = new DataLoader([1, 2, 3], { batchSize: 2 }) as unknown as Record<string, () => unknown>;
  const none = 'there is no member of this name; expected';
  failing(
    () => loader.batch_size,
    `DataLoader.batch_size: ${none} the value that the program has passed as batchSize.`,
  );
  failing(
    () => loader.dataset,
    `DataLoader.dataset: ${none} the value that the program has passed as dataset.`,
  );
  failing(() => loader.state_dict!(), `DataLoader.state_dict(): ${none} state().`);
  failing(() => loader.setEpoch!(), `DataLoader.setEpoch(): ${none} setEpoch() of the sampler.`);
  const sampler = new DistributedSampler(6, { replicas: 2, rank: 0 });
  const foreign = sampler as unknown as Record<string, () => unknown>;
  failing(() => foreign.numSamples, `sampler.numSamples: ${none} length.`);
  failing(() => foreign.total_size, `sampler.total_size: ${none} length × replicas.`);
  failing(() => foreign.set_epoch!(), `sampler.set_epoch(): ${none} setEpoch().`);
  const batches = new BatchSampler(sampler, 2) as unknown as Record<string, unknown>;
  failing(
    () => batches.batchSize,
    `BatchSampler.batchSize: ${none} the value that the program has passed as batchSize.`,
  );
});

test('a data set whose get() returns nothing', () => {
  const loader = new DataLoader({ length: 2, get: (): unknown => undefined }, { batchSize: 2 });
  failing(() => [...loader], 'got undefined. Does get() return the sample?', 'ERR_DATA_COLLATE');
});

test('a collate function that returns nothing', async () => {
  const loader = new DataLoader(dataset, { collate: () => undefined });
  const message =
    'expected a batch, got undefined from collate or the data set. Does the function return its result?';
  failing(() => [...loader], message, 'ERR_DATA_COLLATE');
  await expect(loader[Symbol.asyncIterator]().next()).rejects.toThrow(message);
});
