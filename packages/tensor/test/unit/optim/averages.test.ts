// Tests averages of weights, and the statistics of batch norms that go with them; training.test.ts compares numbers.
import { describe, expect, test } from 'vitest';
import { memory, ones, scope, type Tensor, tensor } from '../../../src/index.ts';
import { BatchNorm1d, Linear, Module, ReLU, Sequential } from '../../../src/nn/index.ts';
import { AveragedModel, getEmaAvgFn, getEmaMultiAvgFn, SGD, updateBn } from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';

describe('AveragedModel', () => {
  test('starts with the values of the model, and averages what it had at each update', () => {
    const net = new Linear(2, 1);
    const averaged = new AveragedModel(net, new Linear(2, 1), { multiAvgFn: getEmaMultiAvgFn(0.5) });
    expect(averaged.module.weight.toArray()).toEqual(net.weight.toArray());
    const optimizer = new SGD(net.namedParameters(), { lr: 1 });
    const start = net.weight.toArray() as number[][];
    averaged.updateParameters(net);
    scope(() =>
      net
        .forward(ones([1, 2]))
        .sum()
        .backward(),
    );
    optimizer.step();
    averaged.updateParameters(net);
    expect(averaged.nAveraged.item()).toBe(2);
    for (const [i, value] of (averaged.module.weight.toArray() as number[][])[0]!.entries())
      expect(value).toBeCloseTo(start[0]![i]! - 0.5, 6);
    const input = ones([1, 2]);
    expect(averaged.forward(input).toArray()).toEqual(averaged.module.forward(input).toArray());
  });

  test('keeps its state under the names of PyTorch, and goes on from it', () => {
    const net = new Linear(1, 1);
    const averaged = new AveragedModel(net, new Linear(1, 1));
    averaged.updateParameters(net);
    const state = averaged.stateDict();
    expect(Object.keys(state)).toEqual(['module.weight', 'module.bias', 'n_averaged']);
    const other = new AveragedModel(net, new Linear(1, 1));
    other.loadStateDict(state);
    expect(other.nAveraged.item()).toBe(1);
  });

  test('averages in the dtype of the copy', () => {
    const net = new Linear(1, 1);
    const averaged = new AveragedModel(net, new Linear(1, 1).to('float64'));
    for (let i = 0; i < 3; i++) averaged.updateParameters(net);
    expect(averaged.module.weight.dtype).toBe('float64');
    expect(averaged.module.weight.item()).toBeCloseTo(net.weight.item(), 12);
  });

  test('needs no more memory with each update', () => {
    const net = new BatchNorm1d(3);
    const averaged = new AveragedModel(net, new BatchNorm1d(3), { useBuffers: true });
    for (let i = 0; i < 3; i++) averaged.updateParameters(net);
    const before = memory().tensors;
    for (let i = 0; i < 3; i++) averaged.updateParameters(net);
    expect(memory().tensors).toBe(before);
  });

  test('refuses other models and two functions', () => {
    const net = new Linear(2, 1);
    expect(() => new AveragedModel(net, net)).toThrow('copy: expected a second model of the same class');
    expect(() => new AveragedModel(net, undefined as never)).toThrow('expected a second model');
    expect(() => new AveragedModel(net, new Linear(3, 1))).toThrow("got another 'weight'");
    expect(() => new AveragedModel(net, new Linear(2, 1, { bias: false }))).toThrow("got another 'bias'");
    const both = { avgFn: getEmaAvgFn(), multiAvgFn: getEmaMultiAvgFn() };
    expect(() => new AveragedModel(net, new Linear(2, 1), both)).toThrow('avgFn or multiAvgFn, got both');
    for (const make of [getEmaAvgFn, getEmaMultiAvgFn])
      expect(codeOf(() => make(1.1))).toBe('ERR_TENSOR_ARGUMENT');
    const averaged = new AveragedModel(net, new Linear(2, 1));
    expect(codeOf(() => averaged.updateParameters(undefined as never))).toBe('ERR_TENSOR_ARGUMENT');
    expect(() => averaged.updateParameters(new Linear(4, 1))).toThrow("got another 'weight'");
  });
});

describe('updateBn', () => {
  async function* stream(...batches: Tensor[]): AsyncGenerator<Tensor> {
    for (const batch of batches) yield await Promise.resolve(batch);
  }

  test('takes a stream, and leaves momentum and mode as they were', async () => {
    const norm = new BatchNorm1d(1, { momentum: 0.3 });
    const net = new Sequential(norm, new ReLU()).eval();
    await updateBn(stream(tensor([[1], [3]]), tensor([[5], [7]])), net);
    expect(norm.runningMean!.toArray()).toEqual([4]);
    expect(norm.runningVar!.toArray()).toEqual([2]);
    expect([norm.momentum, norm.training, net.training]).toEqual([0.3, false, false]);
  });

  test('leaves them also if a batch is no tensor', async () => {
    const norm = new BatchNorm1d(1);
    norm.eval();
    await expect(updateBn([{ image: 1 }] as never, norm)).rejects.toThrow(
      'updateBn: batch: expected a tensor, or a list that begins with one',
    );
    expect([norm.momentum, norm.training]).toEqual([0.1, false]);
    await expect(updateBn([], {} as never)).rejects.toThrow('expected a module with a forward');
  });

  test('refuses what is no list of batches before it changes the statistics', async () => {
    const norm = new BatchNorm1d(1);
    norm.forward(tensor([[1], [3]]));
    const mean = norm.runningMean!.toArray();
    for (const loader of [undefined, null, 5, {}, ones([2, 1])])
      await expect(updateBn(loader as never, norm)).rejects.toThrow(
        'updateBn: loader: expected a list or a stream of batches, got ',
      );
    expect([norm.runningMean!.toArray(), norm.momentum]).toEqual([mean, 0.1]);
  });

  test('reads no batch where there are no batch norms', async () => {
    class Untouched extends Module {
      forward(input: Tensor): Tensor {
        return input;
      }
    }
    await updateBn([1] as never, new Untouched());
  });
});
