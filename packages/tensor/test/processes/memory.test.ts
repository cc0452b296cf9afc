// Tests that training loops use constant memory, and that the leak report names what is still in use.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import { loadAddon } from '../../src/backends/native/addon.ts';
import {
  crossEntropy,
  fromHost,
  generator,
  leakReport,
  memory,
  ones,
  scope,
  trackLeaks,
  zeros,
} from '../../src/index.ts';
import { Linear, ReLU, Sequential } from '../../src/nn/index.ts';
import { AdamW, type Optimizer, SGD } from '../../src/optim/index.ts';

const images = new Float32Array(20 * 8 * 12);
generator(3).uniform(images);
const labels = Int32Array.from({ length: 20 * 8 }, (_, i) => i % 4);

/** Makes an MLP and returns a function that trains it for a number of steps. */
function training(makeOptimizer: (model: Sequential) => Optimizer): (steps: number) => void {
  const model = new Sequential(new Linear(12, 16), new ReLU(), new Linear(16, 4));
  const optimizer = makeOptimizer(model);
  return (steps) => {
    for (let i = 0; i < steps; i++) {
      const at = i % 20;
      scope(() => {
        const x = fromHost(images.subarray(at * 96, at * 96 + 96), [8, 12]);
        const y = fromHost(labels.subarray(at * 8, at * 8 + 8));
        optimizer.zeroGrad();
        crossEntropy(model.forward(x), y).backward();
        optimizer.step();
      });
    }
  };
}

const state = () => {
  const { tensors, bytes, cachedBytes, allocations } = memory();
  return { tensors, bytes, cachedBytes, allocations, native: loadAddon().memory() };
};

describe('a training loop', () => {
  test('asks for no memory once it has done a few steps, backward and optimiser included', () => {
    for (const optimizer of [
      (model: Sequential) => new SGD(model.parameters(), { lr: 0.1, momentum: 0.9 }),
      (model: Sequential) => new AdamW(model.parameters(), { lr: 0.01 }),
    ]) {
      const train = training(optimizer);
      train(5);
      const before = state();
      train(200);
      expect(state()).toEqual(before);
    }
  });

  test('of 10,000 steps does not grow, without a forced collection', () => {
    const train = training((model) => new SGD(model.parameters(), { lr: 0.1, momentum: 0.9 }));
    train(100);
    const before = { ...state(), arrayBuffers: process.memoryUsage().arrayBuffers };
    train(10_000);
    const after = { ...state(), arrayBuffers: process.memoryUsage().arrayBuffers };
    expect(after.arrayBuffers).toBeLessThan(before.arrayBuffers + (1 << 20));
    expect({ ...after, arrayBuffers: 0 }).toEqual({ ...before, arrayBuffers: 0 });
  });
});

describe('the leak report', () => {
  afterEach(() => trackLeaks(false));

  test('is empty unless tensors are tracked', () => {
    const a = zeros([4]);
    expect(leakReport()).toEqual([]);
    a.dispose();
  });

  test('names the lines that made what is still in use, most bytes first', () => {
    trackLeaks();
    const forgotten = Array.from({ length: 3 }, function leakingLoop() {
      return zeros([100]);
    });
    const big = (function leakingOnce() {
      return ones([10, 100]).neg();
    })();
    zeros([1000]).dispose();
    const report = leakReport();
    expect(report.map(({ count, bytes }) => ({ count, bytes }))).toEqual([
      { count: 1, bytes: 4000 },
      { count: 1, bytes: 4000 },
      { count: 3, bytes: 1200 },
    ]);
    expect(report[0]!.stack.split('\n')[0]).toContain('leakingOnce');
    expect(report[2]!.stack.split('\n')[0]).toContain('leakingLoop');
    expect(report[2]!.stack).toContain('memory.test.ts');
    for (const tensor of forgotten) tensor.dispose();
    big.dispose();
    expect(leakReport()).toHaveLength(1);
  });

  test('is on from the start with RINGWISE_TENSOR_DEBUG=1', async () => {
    const program = `import { leakReport, zeros } from '@ringwise/tensor'; function user() { return zeros([8]); }
      user(); const [leak] = leakReport(); console.log(leak.count, leak.bytes, leak.stack.split('\\n')[0]);`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
      env: { ...process.env, RINGWISE_TENSOR_DEBUG: '1' },
      cwd: import.meta.dirname,
      timeout: 240_000,
    });
    expect(stdout).toMatch(/^1 32 at user /);
  });
});
