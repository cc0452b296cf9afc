// Tests detectAnomaly and enableGrad.
import { describe, expect, test } from 'vitest';
import {
  addLayerNorm,
  detectAnomaly,
  enableGrad,
  isGradEnabled,
  log,
  noGrad,
  sqrt,
  type Tensor,
  tensor,
} from '../../../src/index.ts';
import { Linear } from '../../../src/nn/index.ts';
import { codeOf } from '../../support/code-of.ts';

const leaf = (...values: number[]): Tensor => tensor(values, { requiresGrad: true });

describe('detectAnomaly', () => {
  test('names the operation that made the first NaN, and the line that called it', () => {
    const x = leaf(1, -1);
    const run = (): Tensor => detectAnomaly(() => sqrt(log(x.mul(2).abs()).sub(3)).sum());
    expect(run).toThrow(
      /^detectAnomaly: the result of 'sqrt' has NaN \(result of shape \[2\], called .*anomaly\.test\.ts:\d+/,
    );
    expect(codeOf(run)).toBe('ERR_TENSOR_ANOMALY');
  });

  test('names the operation whose gradient is not finite', () => {
    const x = leaf(0, 1);
    const run = (): void => detectAnomaly(() => sqrt(x).sum().backward());
    expect(run).toThrow(/a gradient that 'sqrt' sent has Infinity .*anomaly\.test\.ts:\d+/);
    expect(() => detectAnomaly(() => x.mul(Infinity))).toThrow("the result of 'mul' has NaN");
  });

  test('lets −∞ through forwards, which masks are made of, and finds what its gradient does', () => {
    const x = leaf(0, 1);
    expect(detectAnomaly(() => log(x)).toArray()).toEqual([-Infinity, 0]);
    expect(() => detectAnomaly(() => log(x).sum().backward())).toThrow(
      "a gradient that 'log' sent has Infinity",
    );
  });

  test('checks the sum that a norm computes, not what its memory held before', () => {
    const [x, bad] = [leaf(1, 2), leaf(NaN, 1)];
    tensor([NaN, NaN]).dispose(); // the next tensor of two elements reuses the memory
    detectAnomaly(() => addLayerNorm(x, x, [2]));
    expect(() => detectAnomaly(() => addLayerNorm(x, bad, [2]))).toThrow("the result of 'add' has NaN");
  });

  test('says nothing about numbers that are finite, and nothing outside', () => {
    const layer = new Linear(2, 2);
    detectAnomaly(() =>
      layer
        .forward(tensor([[1, 2]]))
        .sum()
        .backward(),
    );
    expect(layer.weight.grad!.toArray()).toEqual([
      [1, 2],
      [1, 2],
    ]);
    expect(sqrt(leaf(-1)).item()).toBeNaN();
  });

  test('follows an async function', async () => {
    const x = leaf(-1);
    const run = detectAnomaly(async () => {
      await Promise.resolve();
      return log(x);
    });
    await expect(run).rejects.toThrow("the result of 'log' has NaN");
  });
});

test('enableGrad records inside noGrad', () => {
  const x = leaf(2);
  noGrad(() => {
    expect(x.mul(2).requiresGrad).toBe(false);
    const y = enableGrad(() => {
      expect(isGradEnabled()).toBe(true);
      return x.mul(2);
    });
    y.backward();
  });
  expect(x.grad!.toArray()).toEqual([2]);
});
