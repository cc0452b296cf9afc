// Tests the outline that a module prints instead of its values.
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { zeros } from '../../../src/index.ts';
import {
  BatchNorm2d,
  Conv2d,
  Flatten,
  LayerNorm,
  Linear,
  Module,
  Sequential,
} from '../../../src/nn/index.ts';

test('a model prints its modules by name, shapes and settings', () => {
  const net = new Sequential(
    new Conv2d(1, 4, 3, { padding: 1 }),
    new BatchNorm2d(4),
    new Flatten(),
    new Sequential(new Linear(8, 2, { bias: false }).to('float64'), new LayerNorm([2, 1])),
  );
  const text = `Sequential(
  (0): Conv2d(weight: [4, 1, 3, 3], bias: [4], padding: 1, groups: 1, paddingMode: 'zeros')
  (1): BatchNorm2d(weight: [4], bias: [4], running_mean: [4], running_var: [4], num_batches_tracked: int64 [])
  (2): Flatten(startDim: 1, endDim: -1)
  (3): Sequential(
    (0): Linear(weight: float64 [2, 8])
    (1): LayerNorm(weight: [2, 1], bias: [2, 1], shape: [2, 1], eps: 0.00001)
  )
)`;
  expect(`${net}`).toBe(text);
  expect(inspect(net)).toBe(text);
});

test('lists of modules print each under its name, and a module inside itself ends', () => {
  class Looped extends Module {
    readonly layers = [new Linear(1, 1), [new Flatten()]];
    readonly ratio = 0.5;
    readonly isDeep = true;
    readonly scale = zeros([2]);
    readonly none = null;
    self: Module = this;
  }
  expect(`${new Looped()}`).toBe(`Looped(ratio: 0.5, isDeep: true, scale: [2]
  (layers.0): Linear(weight: [1, 1], bias: [1])
  (layers.1.0): Flatten(startDim: 1, endDim: -1)
  (self): Looped(…)
)`);
});
