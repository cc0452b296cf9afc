// Tests gradients that a program gives on another device than the tensor's.
import { expect, test } from 'vitest';
import { customFunction, grad, ones, type Tensor } from '../../../src/index.ts';
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
