// Tests layers for images: convolution, pooling and batch normalisation.
import { describe, expect, test } from 'vitest';
import { manualSeed, memory, noGrad, ones, randn, scope, type Tensor, zeros } from '../../../src/index.ts';
import {
  AdaptiveAvgPool2d,
  AvgPool2d,
  BatchNorm1d,
  BatchNorm2d,
  Conv2d,
  Flatten,
  Linear,
  MaxPool2d,
  ReLU,
  Sequential,
} from '../../../src/nn/index.ts';
import { SGD } from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';

const array = (tensor: Tensor | null): number[] => tensor!.toArray() as number[];

describe('Conv2d', () => {
  test('starts uniform in ±1/√fan-in, weight and bias', () => {
    manualSeed(3);
    const layer = new Conv2d(8, 64, [3, 5], { groups: 2 });
    expect([layer.weight.shape, layer.bias!.shape]).toEqual([[64, 4, 3, 5], [64]]);
    const bound = 1 / Math.sqrt(4 * 3 * 5);
    for (const tensor of [layer.weight, layer.bias!]) {
      const largest = tensor.abs().max().item();
      expect(largest).toBeLessThanOrEqual(bound);
      expect(largest).toBeGreaterThan(0.9 * bound);
      expect(Math.abs(tensor.mean().item())).toBeLessThan(0.2 * bound);
    }
  });

  test('hands its options on, and needs no bias', () => {
    const layer = new Conv2d(2, 4, 3, { stride: 2, padding: 1, bias: false });
    expect(layer.namedParameters().map(([name]) => name)).toEqual(['weight']);
    expect(layer.forward(zeros([1, 2, 8, 8])).shape).toEqual([1, 4, 4, 4]);
    expect(() => new Conv2d(3, 4, 1, { groups: 2 })).toThrow(
      'Conv2d: inChannels: expected a multiple of groups 2, got 3.',
    );
  });
});

test('pooling layers pool', () => {
  const x = ones([1, 2, 6, 8]);
  expect(new MaxPool2d(2).forward(x).shape).toEqual([1, 2, 3, 4]);
  expect(new AvgPool2d([3, 2], { stride: 1 }).forward(x).shape).toEqual([1, 2, 4, 7]);
  expect(new AdaptiveAvgPool2d([1, 3]).forward(x).shape).toEqual([1, 2, 1, 3]);
});

describe('BatchNorm1d and BatchNorm2d', () => {
  test('save parameters and buffers under the names of PyTorch, and train only the parameters', () => {
    const layer = new Sequential(new BatchNorm1d(3));
    expect(Object.keys(layer.stateDict())).toEqual(
      ['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked'].map((name) => `0.${name}`),
    );
    expect(layer.namedParameters().map(([name]) => name)).toEqual(['0.weight', '0.bias']);
    expect(new BatchNorm1d(3, { affine: false, trackRunningStats: false }).stateDict()).toEqual({});
    const other = new Sequential(new BatchNorm1d(3));
    layer.forward(randn([4, 3]));
    other.loadStateDict(layer.stateDict());
    expect(other.stateDict()['0.num_batches_tracked']!.item()).toBe(1);
    expect(array(other.stateDict()['0.running_mean']!)).toEqual(array(layer.stateDict()['0.running_mean']!));
  });

  test('normalise by the batch in training, by what they have seen in evaluation', () => {
    manualSeed(1);
    const layer = new BatchNorm2d(2, { momentum: 0.5 });
    for (let step = 0; step < 20; step++) scope(() => layer.forward(randn([16, 2, 5, 5]).mul(3).add(7)));
    expect(layer.numBatchesTracked!.item()).toBe(20);
    for (const mean of array(layer.runningMean)) expect(mean).toBeCloseTo(7, 0);
    for (const variance of array(layer.runningVar)) expect(Math.abs(variance - 9)).toBeLessThan(1.5);
    const x = randn([4, 2, 3, 3]).mul(3).add(7);
    const trained = layer.forward(x);
    for (const mean of array(trained.mean([0, 2, 3]))) expect(Math.abs(mean)).toBeLessThan(1e-5);
    layer.eval();
    const before = array(layer.runningMean);
    const seen = layer.forward(x);
    expect(array(layer.runningMean)).toEqual(before);
    expect(seen.sub(x.sub(7).div(3)).abs().max().item()).toBeLessThan(0.5);
  });

  test('without momentum the running mean is that over all batches', () => {
    const layer = new BatchNorm1d(1, { momentum: null });
    for (const value of [1, 2, 6]) layer.forward(ones([2, 1]).mul(value));
    expect(array(layer.runningMean)[0]).toBeCloseTo(3, 6);
  });

  test('without running statistics evaluation takes the batch', () => {
    const layer = new BatchNorm1d(2, { trackRunningStats: false }).eval();
    expect(
      Math.abs(
        layer
          .forward(randn([8, 2]).add(5))
          .mean()
          .item(),
      ),
    ).toBeLessThan(1e-5);
  });

  test('refuse inputs of the wrong rank', () => {
    expect(codeOf(() => new BatchNorm2d(2).forward(zeros([2, 2])))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => new BatchNorm1d(2).forward(zeros([2, 2, 2, 2])))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => new BatchNorm1d(0))).toBe('ERR_TENSOR_ARGUMENT');
  });
});

test('a small network of all of these learns stripes, and its memory does not grow', () => {
  manualSeed(2);
  const model = new Sequential(
    new Conv2d(1, 6, 3, { padding: 1, bias: false }),
    new BatchNorm2d(6),
    new ReLU(),
    new MaxPool2d(2),
    new Conv2d(6, 8, 3, { padding: 'same' }),
    new BatchNorm2d(8),
    new ReLU(),
    new AdaptiveAvgPool2d(1),
    new Flatten(),
    new Linear(8, 1),
  );
  const optimizer = new SGD(model.parameters(), { lr: 0.1, momentum: 0.9 });
  // The target of horizontal stripes is −1, that of vertical stripes 1; both images have noise.
  const batch = (): [Tensor, Tensor] => {
    const stripes = ones([8, 8]);
    for (let row = 0; row < 8; row += 2) stripes.at(row).fill_(-1);
    const both = [stripes, stripes.t()].flatMap((plane) => Array(8).fill(plane) as Tensor[]);
    const x = randn([16, 1, 8, 8]);
    for (const [i, plane] of both.entries()) x.at(i, 0).add_(plane);
    return [x, signs()];
  };
  const signs = (): Tensor => {
    const labels = ones([16, 1]);
    labels.narrow(0, 0, 8).fill_(-1);
    return labels;
  };
  const step = (): number =>
    scope(() => {
      const [x, y] = batch();
      const loss = model.forward(x).sub(y).square().mean();
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      return loss.item();
    });
  for (let i = 0; i < 30; i++) step();
  const { bytes, cachedBytes } = memory();
  for (let i = 0; i < 30; i++) step();
  expect(memory()).toMatchObject({ bytes, cachedBytes });
  model.eval();
  const wrong = scope(() => {
    const [x, y] = batch();
    return noGrad(() => model.forward(x).mul(y).le(0).sum().item());
  });
  expect(wrong).toBeLessThanOrEqual(1);
});
