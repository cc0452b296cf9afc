// Tests gradients that a program gives on another device than the tensor's, and second gradients of recurrent layers.
import { expect, test } from 'vitest';
import {
  customFunction,
  type Device,
  grad,
  manualSeed,
  ones,
  randn,
  type Tensor,
} from '../../../src/index.ts';
import { GRU, LSTM, RNN } from '../../../src/nn/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { cudaDevice } from '../../support/cuda-device.ts';

const leaf = (): Tensor => ones([2], { device: 'cuda', requiresGrad: true });
const host = (): Tensor => ones([2]);

const givers: Record<string, () => unknown> = {
  backward: () => leaf().neg().backward(host()),
  grad: () => {
    const x = leaf();
    grad(x.neg(), x, { gradOutputs: [host()] });
  },
  registerHook: () => {
    const x = leaf();
    x.registerHook(host);
    x.sum().backward();
  },
  customFunction: () => {
    const op = customFunction<[Tensor]>({ name: 'own', forward: (_, a) => a.neg(), backward: host });
    op(leaf()).sum().backward();
  },
};

test.skipIf(cudaDevice === null).each(Object.entries(givers))(
  '%s refuses a gradient on another device',
  (_, give) => {
    expect(give).toThrow(/cuda:0 and cpu/);
    expect(codeOf(give)).toBe('ERR_TENSOR_DEVICE');
  },
);

test.skipIf(cudaDevice === null).each(Object.entries({ RNN, LSTM, GRU }))(
  'second gradients of %s are those of the CPU',
  (_, Layer) => {
    const penaltyGradients = (device: Device): number[] => {
      manualSeed(1);
      const layer = new Layer(3, 4, { bidirectional: true }) as RNN;
      const x = randn([5, 2, 3]).to(device);
      x.requiresGrad = true;
      layer.to(device);
      const [slope] = grad(layer.forward(x)[0].square().sum(), x, { createGraph: true }) as [Tensor];
      slope.square().sum().backward();
      return [x, ...layer.parameters()].flatMap((leaf) => [
        ...(leaf.grad!.to('cpu').dataSync() as Float32Array),
      ]);
    };
    const [own, host] = [penaltyGradients('cuda:0'), penaltyGradients('cpu')];
    expect(own.length).toBe(host.length);
    for (const [i, value] of host.entries()) expect(own[i]).toBeCloseTo(value, 3);
  },
);
