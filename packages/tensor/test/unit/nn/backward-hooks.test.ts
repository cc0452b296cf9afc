// Full backward hooks of modules. The expected numbers are those of PyTorch 2.13.
import { describe, expect, test } from 'vitest';
import { grad, memory, noGrad, scope, type Tensor, tensor } from '../../../src/index.ts';
import { Linear, Module } from '../../../src/nn/index.ts';
import { codeOf } from '../../support/code-of.ts';

type Seen = readonly [gradInput: readonly unknown[], gradOutput: readonly unknown[]];

class Several extends Module {
  forward(a: Tensor, b: Tensor, _unused: Tensor, n: number): [Tensor, Tensor] {
    return [a.mul(b), a.add(n)];
  }
}

/** Returns a layer that multiplies by 3. */
function threefold(): Linear {
  const layer = new Linear(1, 1, { bias: false });
  noGrad(() => layer.weight.fill_(3));
  return layer;
}

const shown = (gradients: readonly (Tensor | null)[]): unknown[] =>
  gradients.map((gradient) => (gradient === null ? null : gradient.toArray()));

/** Adds a hook that notes what it gets. */
function watched(module: Module): Seen[] {
  const log: Seen[] = [];
  module.registerFullBackwardHook((_, gradInput, gradOutput) => {
    log.push([shown(gradInput), shown(gradOutput)]);
    return undefined;
  });
  return log;
}

const leaf = (values: number[] | number[][]): Tensor => tensor(values, { requiresGrad: true });

describe('a full backward hook', () => {
  test('gets the gradients of all arguments and of all results', () => {
    const module = new Several();
    const log = watched(module);
    const [a, b, unused] = [leaf([1, 2]), tensor([3, 4]), leaf([5])];
    const [p, q] = module.forward(a, b, unused, 2);
    p.sum().mul(2).add(q.sum()).backward(undefined, { retainGraph: true });
    expect(log.splice(0)).toEqual([
      [
        [[7, 9], [0, 0], [0], null],
        [
          [2, 2],
          [1, 1],
        ],
      ],
    ]);
    expect([a.grad?.toArray(), unused.grad?.toArray()]).toEqual([[7, 9], [0]]);
    p.sum().backward();
    expect(log).toEqual([
      [
        [[3, 4], [0, 0], [0], null],
        [[1, 1], null],
      ],
    ]);
    expect(a.grad?.toArray()).toEqual([10, 13]);
  });

  test('may replace gradients, which later hooks get; so may a hook before it', () => {
    const module = new Several();
    const times = (gradients: readonly (Tensor | null)[], factor: number): (Tensor | null)[] =>
      gradients.map((gradient) => (gradient === null ? null : gradient.mul(factor)));
    module.registerFullBackwardHook((_, gradInput) => times(gradInput, 10));
    const log = watched(module);
    module.registerFullBackwardPreHook((_, gradOutput) => times(gradOutput, 100));
    const a = leaf([1, 2]);
    const [p, q] = module.forward(a, tensor([3, 4]), leaf([5]), 2);
    p.sum().add(q.sum()).backward();
    expect(log).toEqual([
      [
        [[4000, 5000], [0, 0], [0], null],
        [
          [100, 100],
          [100, 100],
        ],
      ],
    ]);
    expect(a.grad?.toArray()).toEqual([4000, 5000]);
  });

  test('runs for each call of forward, and in each backward over a call', () => {
    const layer = threefold();
    const log = watched(layer);
    const x = leaf([[2]]);
    const y = layer.forward(layer.forward(x)).sum();
    y.backward(undefined, { retainGraph: true });
    const each = [
      [[[[3]]], [[[1]]]],
      [[[[9]]], [[[3]]]],
    ];
    expect(log.splice(0)).toEqual(each);
    expect([x.grad?.toArray(), layer.weight.grad?.toArray()]).toEqual([[[9]], [[12]]]);
    y.backward();
    expect(log).toEqual(each);
  });

  test('runs at the results if no argument requires a gradient, and not without gradients', () => {
    const layer = threefold();
    const log = watched(layer);
    layer
      .forward(tensor([[2]]))
      .sum()
      .backward();
    expect(log.splice(0)).toEqual([[[null], [[[1]]]]]);
    layer.requiresGrad_(false);
    layer
      .forward(leaf([[2]]))
      .sum()
      .backward();
    expect(log.splice(0)).toEqual([[[[[3]]], [[[1]]]]]);
    expect(layer.forward(tensor([[2]])).requiresGrad).toBe(false);
    layer.requiresGrad_(true);
    expect(noGrad(() => layer.forward(leaf([[2]]))).requiresGrad).toBe(false);
    // The gradient of the weight alone does not reach the argument.
    const [ofWeight] = grad(layer.forward(leaf([[2]])).sum(), layer.weight);
    expect(ofWeight!.toArray()).toEqual([[2]]);
    expect(log).toEqual([]);
  });

  test('runs with a graph, and again when the gradient is differentiated', () => {
    const layer = threefold();
    const log = watched(layer);
    const x = leaf([[2]]);
    const [first] = grad(layer.forward(x).square().sum(), x, { createGraph: true });
    expect(first!.toArray()).toEqual([[36]]);
    expect(log.splice(0)).toEqual([[[[[36]]], [[[12]]]]]);
    const [second] = grad(first!.sum(), x);
    expect(second!.toArray()).toEqual([[18]]);
    expect(log).toEqual([[[[[18]]], [[[6]]]]]);
  });

  test('stays in the calls that were made before it was removed', () => {
    const layer = threefold();
    const log: string[] = [];
    const remove = layer.registerFullBackwardHook(() => {
      log.push('called');
      return undefined;
    });
    const y = layer.forward(leaf([[2]])).sum();
    remove();
    y.backward();
    layer
      .forward(leaf([[2]]))
      .sum()
      .backward();
    expect(log).toEqual(['called']);
    expect(Object.getOwnPropertyDescriptor(layer, 'forward')).toBeUndefined();
  });

  test('refuses a wrong number of gradients, and gradients for arguments that require none', () => {
    const wrong = threefold();
    wrong.registerFullBackwardHook(() => [null, null]);
    expect(() =>
      wrong
        .forward(leaf([[2]]))
        .sum()
        .backward(),
    ).toThrow('registerFullBackwardHook: expected a gradient, or null, for each of 1 inputs, got 2.');
    const frozen = threefold();
    frozen.registerFullBackwardHook(() => [tensor([[1]])]);
    expect(
      codeOf(() =>
        frozen
          .forward(tensor([[2]]))
          .sum()
          .backward(),
      ),
    ).toBe('ERR_TENSOR_AUTOGRAD');
    expect(codeOf(() => frozen.registerFullBackwardHook(1 as never))).toBe('ERR_TENSOR_ARGUMENT');
    const shaped = threefold();
    shaped.registerFullBackwardHook(() => [tensor([1, 2])]);
    expect(
      codeOf(() =>
        shaped
          .forward(leaf([[2]]))
          .sum()
          .backward(),
      ),
    ).toBe('ERR_TENSOR_AUTOGRAD');
  });

  test('leaves no memory', () => {
    const layer = threefold();
    watched(layer);
    const x = leaf([[2]]);
    const step = (): void =>
      scope(() => {
        layer.forward(layer.forward(x)).sum().backward();
        grad(layer.forward(x).sum(), layer.weight);
      });
    step();
    const before = memory().bytes;
    step();
    expect(memory().bytes).toBe(before);
  });
});
