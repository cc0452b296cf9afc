// A group of one, and everything that needs no second rank.
import { type Group, init, loopbackGroups } from '@ringwise/collectives';
import * as tf from '@tensorflow/tfjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataParallel } from '../../src/index.ts';
import { data, flat, model } from '../support/model.ts';

let group: Group;
beforeAll(async () => {
  await tf.setBackend('cpu');
  group = await init();
});
afterAll(() => group.close());

function compiled(): tf.Sequential {
  const net = model(1);
  net.compile({ optimizer: 'adam', loss: 'sparseCategoricalCrossentropy' });
  return net;
}

const { x, y } = data(24);
const quiet = { batchSize: 12, shuffle: false, verbose: 0 } as const;

const error = (code: string, part: string) =>
  expect.objectContaining({ name: 'TfjsError', code, message: expect.stringContaining(part) });

describe('a group of one', () => {
  it('trains as TensorFlow.js does', async () => {
    const [plain, parallel] = [compiled(), compiled()];
    await dataParallel(parallel, { group });
    const histories = [];
    for (const net of [plain, parallel])
      histories.push((await net.fit(x, y, { ...quiet, epochs: 3 })).history);
    expect(flat(parallel)).toEqual(flat(plain));
    expect(histories[1]).toEqual(histories[0]);
    expect(await parallel.trainOnBatch(x, y)).toEqual(await plain.trainOnBatch(x, y));
  });

  it('applies gradients that the program has computed or changed', async () => {
    const variable = tf.variable(tf.tensor1d([1, 2]));
    const optimizer = tf.train.sgd(1);
    await dataParallel({ optimizer, variables: [variable] }, { group });
    const { grads } = tf.variableGrads(() => variable.square().sum().asScalar(), [variable]);
    optimizer.applyGradients(grads);
    expect([...variable.dataSync()]).toEqual([-1, -2]);
    optimizer.applyGradients([{ name: variable.name, tensor: tf.tensor1d([3, 4]) }]);
    expect([...variable.dataSync()]).toEqual([-4, -6]);
  });
});

describe('refuses', () => {
  it.each([
    ['no model', () => dataParallel(undefined as never, { group }), 'a compiled tf.LayersModel'],
    ['a number', () => dataParallel(3 as never, { group }), 'a compiled tf.LayersModel'],
    ['an empty object', () => dataParallel({} as never, { group }), 'a compiled tf.LayersModel'],
    [
      'no variables',
      () => dataParallel({ optimizer: tf.train.sgd(1), variables: [] }, { group }),
      'got none',
    ],
    ['no options', () => dataParallel(compiled(), undefined as never), 'no group'],
    [
      'a group that was not awaited',
      () => dataParallel(compiled(), { group: Promise.resolve(group) as never }),
      'got a promise as group: await it, as in await init()',
    ],
    ['a group for options', () => dataParallel(compiled(), group as never), 'no group'],
    ['a model without layers', () => dataParallel(tf.sequential(), { group }), 'Call model.compile()'],
    ['a model that is not compiled', () => dataParallel(model(1), { group }), 'Call model.compile()'],
    [
      'an integer that trains',
      () =>
        dataParallel(
          { optimizer: tf.train.sgd(1), variables: [tf.variable(tf.tensor1d([1], 'int32'))] },
          { group },
        ),
      'dtype int32; expected float32',
    ],
    [
      'a backend that cannot block',
      () => dataParallel(compiled(), { group: loopbackGroups(1)[0]! }),
      'loopback',
    ],
  ])('%s', async (_, call, part) => {
    await expect(call()).rejects.toThrow(error('ERR_TFJS_INVALID', part));
  });

  it('an option that does not exist', async () => {
    const net = compiled();
    await expect(dataParallel(net, { group, bucketSize: 3 } as never)).rejects.toThrow(/bucketSize/);
    await dataParallel(net, { group }); // nothing is left of the first call
  });

  it('a disposed model, before and after', async () => {
    const [before, after] = [compiled(), compiled()];
    before.dispose();
    await expect(dataParallel(before, { group })).rejects.toThrow(error('ERR_TFJS_INVALID', 'is disposed'));
    const parallel = await dataParallel(after, { group });
    after.dispose();
    await expect(after.fit(x, y, quiet)).rejects.toThrow(
      error('ERR_TFJS_INVALID', 'fit: "weight 0 (kernel)" is disposed'),
    );
    await expect(parallel.assertInSync()).rejects.toThrow(error('ERR_TFJS_INVALID', 'is disposed'));
  });

  it('a second call, until the first is closed', async () => {
    const net = compiled();
    const first = await dataParallel(net, { group });
    await expect(dataParallel(net, { group })).rejects.toThrow(
      error('ERR_TFJS_INVALID', 'data-parallel already'),
    );
    first.close();
    first.close();
    const second = await dataParallel(net, { group });
    await net.fit(x, y, quiet);
    second.close();
  });

  it('another optimizer later', async () => {
    const net = compiled();
    await dataParallel(net, { group });
    net.compile({ optimizer: 'sgd', loss: 'sparseCategoricalCrossentropy' });
    for (const call of [() => net.fit(x, y, quiet), () => net.trainOnBatch(x, y)])
      await expect(call()).rejects.toThrow(error('ERR_TFJS_CHANGED', 'another optimizer'));
  });

  it('variables that it was not given', async () => {
    const [own, other] = [tf.variable(tf.scalar(1)), tf.variable(tf.scalar(2))];
    const optimizer = tf.train.sgd(1);
    await dataParallel({ optimizer, variables: [own] }, { group });
    const loss = () => own.add(other).asScalar();
    expect(() => optimizer.minimize(loss, false, [own, other])).toThrow(
      error('ERR_TFJS_CHANGED', 'computeGradients'),
    );
    expect(() => optimizer.applyGradients({ [other.name]: tf.scalar(1) })).toThrow(
      error('ERR_TFJS_CHANGED', 'applyGradients'),
    );
    optimizer.minimize(loss); // by default, its own
    expect([own.dataSync()[0], other.dataSync()[0]]).toEqual([0, 2]);
  });
});

it('close() gives all methods back', async () => {
  const net = compiled();
  const names = () => [Object.keys(net).toSorted(), Object.keys(net.optimizer).toSorted()];
  const before = names();
  const parallel = await dataParallel(net, { group });
  expect(names()).not.toEqual(before);
  parallel.close();
  expect(names()).toEqual(before);
  await net.fit(x, y, quiet);
  await expect(parallel.assertInSync()).rejects.toThrow(error('ERR_TFJS_CLOSED', 'close()'));
});

it('two models share a thread', async () => {
  const nets = [compiled(), compiled()];
  for (const net of nets) await dataParallel(net, { group });
  for (const net of nets) await net.fit(x, y, quiet);
  expect(flat(nets[0]!)).toEqual(flat(nets[1]!));
});
