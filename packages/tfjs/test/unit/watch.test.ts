// The gradients that are reported early are those that TensorFlow.js computes without us.
import * as tf from '@tensorflow/tfjs';
import { beforeAll, describe, expect, it } from 'vitest';
import { watchGradients } from '../../src/watch.ts';
import { model } from '../support/model.ts';

beforeAll(async () => {
  await tf.setBackend('cpu');
});

const seeded = (seed: number) => tf.initializers.glorotUniform({ seed });

const models: Readonly<Record<string, () => tf.LayersModel>> = {
  dense: () => model(1),
  'batch normalization': () => model(1, true),
  'a layer that is used twice, with a regularizer': () => {
    const input = tf.input({ shape: [12] });
    const twice = tf.layers.dense({ units: 12, kernelInitializer: seeded(1), kernelRegularizer: 'l1l2' });
    return tf.model({ inputs: input, outputs: twice.apply(twice.apply(input)) as tf.SymbolicTensor });
  },
  recurrent: () => {
    const options = { units: 2, kernelInitializer: seeded(1), recurrentInitializer: seeded(2) };
    return tf.sequential({
      layers: [tf.layers.reshape({ targetShape: [4, 3], inputShape: [12] }), tf.layers.lstm(options)],
    });
  },
  'both directions': () => {
    const layer = tf.layers.simpleRNN({ units: 2, kernelInitializer: seeded(1) }) as tf.RNN;
    return tf.sequential({
      layers: [
        tf.layers.reshape({ targetShape: [4, 3], inputShape: [12] }),
        tf.layers.bidirectional({ layer, mergeMode: 'concat' }),
      ],
    });
  },
  embedding: () => {
    const layer = tf.layers.embedding({
      inputDim: 3,
      outputDim: 2,
      embeddingsInitializer: seeded(1),
      inputShape: [12],
    });
    return tf.sequential({ layers: [layer, tf.layers.flatten()] });
  },
};

describe.each(Object.entries(models))('%s', (_, make) => {
  it('reports each weight once, last layer first', () => {
    const net = make();
    const x = tf.tensor2d(
      Array.from({ length: 24 }, (_, i) => i % 3),
      [2, 12],
    );
    const penalties = net as unknown as { calculateLosses(): tf.Scalar[] };
    const loss = () => {
      const out = net.apply(x, { training: true }) as tf.Tensor;
      return penalties
        .calculateLosses()
        .reduce((sum, each) => sum.add(each), out.square().mean() as tf.Scalar);
    };
    const weights = net.trainableWeights;
    const variables = weights.map((weight) => weight.read() as tf.Variable);
    const plain = tf.variableGrads(loss, variables).grads;
    const before = tf.memory().numTensors;
    const reported = new Map<number, number[]>();
    const { value, grads } = watchGradients(
      weights,
      (index, gradient) => {
        expect(reported.has(index)).toBe(false);
        reported.set(index, [...gradient.dataSync()]);
      },
      loss,
      (watched) => tf.variableGrads(watched, variables),
    );
    const expected = variables.map(({ name }) => [...plain[name]!.dataSync()]);
    expect([...reported.keys()].toSorted((a, b) => a - b)).toEqual([...weights.keys()]);
    expect([...weights.keys()].map((index) => reported.get(index))).toEqual(expected);
    expect(variables.map(({ name }) => [...grads[name]!.dataSync()])).toEqual(expected);
    expect([...reported.keys()][0]).toBeGreaterThanOrEqual([...reported.keys()].at(-1)!);
    tf.dispose([value, grads]);
    expect(tf.memory().numTensors).toBe(before);
    expect(weights.map((weight) => weight.read())).toEqual(variables);
  });
});

it('a loss that throws leaves the weights as they were', () => {
  const net = model(1);
  const [weight] = net.trainableWeights;
  const variable = weight!.read();
  const run = () =>
    watchGradients(
      [weight!],
      () => {},
      () => {
        weight!.read();
        throw new Error('the loss');
      },
      (watched) => tf.variableGrads(watched, [variable as tf.Variable]),
    );
  expect(run).toThrow('the loss');
  expect(weight!.read()).toBe(variable);
});
