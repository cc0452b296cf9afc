import { describe, expect, test } from 'vitest';
import { crossEntropy, linear, memory, relu, type Tensor, tensor } from '../src/index.ts';
import { parameter } from '../src/nn/index.ts';
import { SGD, type SGDOptions } from '../src/optim/index.ts';
import { codeOf } from './code-of.ts';

/** Three steps on f(p) = Σ p² / 2 · [1, 10], whose gradient is p · [1, 10]. */
function threeSteps(options: SGDOptions, change?: (optimizer: SGD, step: number) => void): number[] {
  const p = parameter(tensor([1, -2]));
  const optimizer = new SGD([p], options);
  for (let step = 0; step < 3; step++) {
    optimizer.zeroGrad();
    p.square()
      .mul(tensor([0.5, 5]))
      .sum()
      .backward();
    optimizer.step();
    change?.(optimizer, step);
  }
  return Array.from(p.dataSync() as Float32Array);
}
const expectClose = (got: number[], want: number[]): void => {
  for (const [i, value] of want.entries()) expect(got[i]).toBeCloseTo(value, 5);
};

describe('SGD', () => {
  // The same three steps by hand, in float64.
  test.each<[string, SGDOptions]>([
    ['plain', { lr: 0.05 }],
    ['momentum', { lr: 0.05, momentum: 0.9 }],
    ['dampening', { lr: 0.05, momentum: 0.9, dampening: 0.5 }],
    ['weight decay', { lr: 0.05, weightDecay: 0.1 }],
    ['nesterov', { lr: 0.05, momentum: 0.9, nesterov: true, weightDecay: 0.1 }],
  ])('%s', (_, options) => {
    const { lr, momentum = 0, dampening = 0, weightDecay = 0, nesterov = false } = options;
    const want = [1, -2].map((start, i) => {
      let p = start;
      let v = 0;
      for (let step = 0; step < 3; step++) {
        const g = p * [1, 10][i]! + weightDecay * p;
        v = step === 0 ? g : momentum * v + (1 - dampening) * g;
        p -= lr * (nesterov ? g + momentum * v : v);
      }
      return p;
    });
    expectClose(threeSteps(options), want);
  });

  test('trains a small network with the losses that PyTorch 2.13 gives', () => {
    const series = (count: number, f: (i: number) => number): Float32Array =>
      new Float32Array(count).map((_, i) => f(i));
    const make = (data: Float32Array, ...shape: number[]): Tensor => parameter(tensor(data, { shape }));
    const w1 = make(series(20, Math.sin), 5, 4);
    const b1 = make(series(5, Math.cos), 5);
    const w2 = make(
      series(15, (i) => Math.cos(i) * 0.5),
      3,
      5,
    );
    const b2 = make(new Float32Array(3), 3);
    const x = tensor(
      series(16, (i) => Math.sin(i) * 2),
      { shape: [4, 4] },
    );
    const y = tensor([0n, 2n, 1n, 1n]);
    const optimizer = new SGD([w1, b1, w2, b2], {
      lr: 0.2,
      momentum: 0.9,
      weightDecay: 0.01,
      nesterov: true,
    });
    const losses = Array.from({ length: 5 }, () => {
      const loss = crossEntropy(linear(relu(linear(x, w1, b1)), w2, b2), y);
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      return loss.item();
    });
    expectClose(losses, [0.914771, 0.367871, 0.259775, 0.205876, 0.159021]);
    expectClose(b1.toArray() as number[], [1.125028, 0.52248, -0.381614, -1.02898, -0.514101]);
  });

  test('follows a learning rate that changes between steps', () => {
    const got = threeSteps({ lr: 0.1 }, (optimizer, step) => {
      optimizer.lr = step === 0 ? 0.01 : 0;
    });
    expectClose(got, [0.9 * 0.99, 0]);
  });

  test('skips parameters without a gradient', () => {
    const [p, q] = [parameter(tensor([1])), parameter(tensor([1]))];
    const optimizer = new SGD([p, q], { lr: 1, weightDecay: 0.5, momentum: 0.9 });
    p.mul(2).backward();
    optimizer.step();
    expect([p.item(), q.item()]).toEqual([-1.5, 1]);
    q.requiresGrad = false;
    optimizer.zeroGrad();
    optimizer.step();
    expect(p.item()).toBe(-1.5);
  });

  test('refuses settings that make no sense', () => {
    const p = parameter(tensor([1]));
    for (const options of [
      { lr: -1 },
      { lr: NaN },
      { lr: 1, momentum: -0.1 },
      { lr: 1, nesterov: true },
      { lr: 1, nesterov: true, momentum: 0.9, dampening: 0.1 },
    ]) {
      expect(codeOf(() => new SGD([p], options))).toBe('ERR_TENSOR_ARGUMENT');
    }
    expect(() => new SGD([], { lr: 1 })).toThrow('expected at least one parameter, got none');
  });

  test('resumes exactly from its state', () => {
    const options = { lr: 0.05, momentum: 0.9 };
    const step = (p: Tensor, optimizer: SGD): void => {
      optimizer.zeroGrad();
      p.square().sum().backward();
      optimizer.step();
    };
    const p = parameter(tensor([1, -2]));
    const optimizer = new SGD([p], options);
    step(p, optimizer);
    const q = parameter(p.detach().clone());
    const resumed = new SGD([q], { lr: 1 });
    resumed.loadStateDict(optimizer.stateDict());
    expect(resumed).toMatchObject(options);
    for (let i = 0; i < 3; i++) {
      step(p, optimizer);
      step(q, resumed);
    }
    expect(q.toArray()).toEqual(p.toArray());
    expect(Object.keys(optimizer.stateDict().tensors)).toEqual(['velocity.0']);
  });

  test('refuses the state of another model, and forgets its own for an empty one', () => {
    const p = parameter(tensor([1, -2]));
    const optimizer = new SGD([p], { lr: 0.1, momentum: 0.9 });
    const other = {
      options: { lr: 1 },
      tensors: { 'velocity.0': tensor([1]), 'velocity.1': tensor([1]), x: p },
    };
    expect(() => optimizer.loadStateDict(other)).toThrow(
      'velocity.0 expected [2], got [1]; unexpected velocity.1; unexpected x',
    );
    expect(optimizer.lr).toBe(0.1);
    p.sum().backward();
    const before = memory().tensors;
    optimizer.step();
    expect(memory().tensors).toBe(before + 1);
    optimizer.loadStateDict({ options: { lr: 0.2, momentum: 0.9 }, tensors: {} });
    expect(memory().tensors).toBe(before);
    expect(optimizer.stateDict().tensors).toEqual({});
  });
});
