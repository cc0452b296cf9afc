// Tests loss scaling of parameters on a CUDA device, also beside some on the CPU.
import { expect, test } from 'vitest';
import { tensor } from '../../../src/index.ts';
import { parameter } from '../../../src/nn/index.ts';
import { GradScaler, SGD } from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { cudaDevice } from '../../support/cuda-device.ts';

test.skipIf(cudaDevice === null)('GradScaler steps, skips and shrinks on a device', () => {
  const p = parameter(tensor([1, 2], { device: 'cuda' }));
  const optimizer = new SGD([p], { lr: 1 });
  const scaler = new GradScaler({ initScale: 1024, growthInterval: 1 });
  const step = (factor: number): boolean => {
    optimizer.zeroGrad();
    scaler.scale(p.mul(factor).sum()).backward();
    const isGood = scaler.step(optimizer);
    scaler.update();
    return isGood;
  };
  expect(step(0.5)).toBe(true);
  expect([p.toArray(), scaler.getScale()]).toEqual([[0.5, 1.5], 2048]);
  expect(step(Infinity)).toBe(false);
  expect([p.toArray(), scaler.getScale()]).toEqual([[0.5, 1.5], 1024]);
});

test.skipIf(cudaDevice === null).each([
  ['cpu', 'cuda'],
  ['cuda', 'cpu'],
] as const)('GradScaler sees infinity on %s, with another parameter on %s', (bad, good) => {
  const [p, q] = [parameter(tensor([1], { device: bad })), parameter(tensor([1], { device: good }))];
  const optimizer = new SGD([{ params: [p] }, { params: [q] }], { lr: 1 });
  const scaler = new GradScaler({ initScale: 4 });
  scaler.scale(p.mul(Infinity).sum()).backward();
  scaler.scale(q.mul(0.5).sum()).backward();
  scaler.unscale_(optimizer);
  expect(q.grad!.toArray()).toEqual([0.5]);
  expect(scaler.step(optimizer)).toBe(false);
  expect([p.toArray(), q.toArray()]).toEqual([[1], [1]]);
});

test('GradScaler refuses a gradient of half precision before it changes any', () => {
  const [p, q] = [parameter(tensor([1])), parameter(tensor([1], { dtype: 'float16' }))];
  const scaler = new GradScaler({ initScale: 4 });
  scaler.scale(p.sum()).backward();
  scaler.scale(q.sum()).backward();
  expect(codeOf(() => scaler.unscale_(new SGD([p, q], { lr: 1 })))).toBe('ERR_TENSOR_DTYPE');
  expect(p.grad!.toArray()).toEqual([4]);
});
