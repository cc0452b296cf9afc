// Trains by real ranks: all have the same bits, and the weights of one process that trains on the joined batches.
import { values, withRanks } from '@ringwise/testing';
import { beforeAll, expect, it } from 'vitest';
import type { Fit, Trained } from '../fixtures/ranks.ts';
import { largestDifference } from '../support/model.ts';

const cases: Readonly<Record<string, Fit>> = {
  'fit: sgd': { optimizer: 'sgd' },
  'fit: adam': { optimizer: 'adam' },
  'fit: momentum': { optimizer: 'momentum' },
  'fit: rmsprop': { optimizer: 'rmsprop' },
  'fit: adagrad': { optimizer: 'adagrad' },
  'fit: adadelta': { optimizer: 'adadelta' },
  'fit: adamax': { optimizer: 'adamax' },
  'fit: class weights': { optimizer: 'adam', classWeight: { 0: 1, 1: 5, 2: 0.5 } },
  'fit: a bucket for every weight': { optimizer: 'adam', bucketBytes: 1 },
  'fit: the wasm backend': { optimizer: 'adam', backend: 'wasm' },
  fitDataset: { optimizer: 'adam', how: 'fitDataset' },
  trainOnBatch: { optimizer: 'adam', how: 'trainOnBatch' },
  'optimizer.minimize()': { optimizer: 'adam', how: 'minimize' },
  'tf.variableGrads() and applyGradients()': { optimizer: 'adam', how: 'variableGrads' },
  'computeGradients(), clipped, applyGradients()': { optimizer: 'adam', how: 'clipped' },
};

const normalized: Fit = { optimizer: 'adam', normalizes: true };

/** What each rank gives, by the number of ranks, in the order of the cases. */
const results = new Map<number, readonly Trained[][]>();

beforeAll(async () => {
  const ranks = new URL('../fixtures/ranks.ts', import.meta.url);
  for (const size of [1, 2, 3]) {
    const options = size === 3 ? [normalized] : Object.values(cases);
    results.set(size, values<Trained[]>(await withRanks(size, ranks, 'trainAll', { args: [options] })));
  }
});

it.each(Object.entries(cases).map(([name, options], index) => ({ name, options, index })))(
  '$name',
  ({ options, index }) => {
    const alone = results.get(1)![0]![index]!;
    const [first, second] = results.get(2)!.map((each) => each[index]!);
    expect(first!.weights).toEqual(second!.weights);
    expect(first!.weights).toHaveLength(alone.weights.length);
    expect(largestDifference(first!.weights, alone.weights)).toBeLessThan(1e-6);
    expect(first!.leftTensors).toBe(alone.leftTensors);
    if (['minimize', 'variableGrads', 'clipped'].includes(options.how ?? '')) return; // losses are the rank's own
    // What fit() returned and what callbacks saw.
    expect(first).toEqual(second);
    expect(Object.keys(first!.history)).toEqual(Object.keys(alone.history));
    for (const [name, numbers] of Object.entries(alone.history))
      expect(largestDifference(first!.history[name]!, numbers), name).toBeLessThan(1e-6);
    expect(first!.batches).toHaveLength(alone.batches.length);
    expect(largestDifference(first!.batches, alone.batches)).toBeLessThan(1e-6);
    const { loss } = first!.history;
    expect(loss!.at(-1)!).toBeLessThan(loss![0]!);
  },
);

it('three ranks with running statistics have the same bits', () => {
  const [first, ...others] = results.get(3)!.map(([only]) => only!);
  for (const other of others) expect(other).toEqual(first);
  expect(first!.weights.every(Number.isFinite)).toBe(true);
  expect(first!.history.val_loss).toHaveLength(4);
});
