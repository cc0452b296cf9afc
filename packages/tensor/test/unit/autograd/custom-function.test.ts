// Tests customFunction, an operation whose backward the user writes.
import { describe, expect, test } from 'vitest';
import { customFunction, gradCheck, memory, noGrad, scope, type Tensor, tensor } from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { leaf64 } from '../../support/leaf64.ts';

const scaledSin = customFunction<[Tensor, number]>({
  name: 'scaledSin',
  forward: (context, x, factor) => {
    context.save(x, x.cos().mul(factor));
    return x.sin().mul(factor);
  },
  backward: ({ saved: [, slope] }, grad) => [grad.mul(slope!), null],
});

const product = customFunction<[Tensor, Tensor]>({
  name: 'product',
  forward: (context, a, b) => {
    context.save(a, b);
    return a.mul(b);
  },
  backward: ({ saved: [a, b], needsGrad }, grad) => [
    needsGrad[0] ? grad.mul(b!) : null,
    needsGrad[1] ? grad.mul(a!) : null,
  ],
});

describe('customFunction', () => {
  test('has the gradient that its backward says', () => {
    const [x, y] = [leaf64([3], 1), leaf64([3], 2)];
    const fn = (a: Tensor, b: Tensor): Tensor => product(scaledSin(a, 3), b).square();
    gradCheck(fn, [x, y], { epsilon: 1e-5, tolerance: 1e-7 });
  });

  test('asks for the gradients that are wanted only, and null is zero', () => {
    const [x, y] = [tensor([1, 2], { requiresGrad: true }), tensor([3, 4])];
    product(x, y).sum().backward();
    expect(x.grad!.toArray()).toEqual([3, 4]);
    const none = customFunction<[Tensor]>({ name: 'none', forward: (_, a) => a, backward: () => [null] });
    const z = tensor([1, 2], { requiresGrad: true });
    none(z).add(z).sum().backward();
    expect(z.grad!.toArray()).toEqual([1, 1]);
  });

  test('may return a tensor that is no input: it stays the leaf that it is', () => {
    const weight = tensor([3, 4], { requiresGrad: true });
    const x = tensor([1, 2], { requiresGrad: true });
    const forward = (): Tensor => weight;
    const pick = customFunction<[Tensor]>({ name: 'pick', forward, backward: (_, grad) => grad.mul(2) });
    pick(x).sum().backward();
    expect([x.grad!.toArray(), weight.isLeaf, weight.grad]).toEqual([[2, 2], true, null]);
    weight.sum().backward();
    expect(weight.grad!.toArray()).toEqual([1, 1]);
    const none = customFunction<[Tensor]>({
      name: 'none',
      forward: () => 3 as never,
      backward: () => [null],
    });
    expect(() => none(x)).toThrow('none: expected forward to return a tensor, got 3');
  });

  test('is not recorded without need', () => {
    const x = tensor([1], { requiresGrad: true });
    expect(noGrad(() => scaledSin(x, 2)).requiresGrad).toBe(false);
    expect(scaledSin(tensor([1]), 2).requiresGrad).toBe(false);
  });

  test('disposes what forward and backward make, and holds what is saved', () => {
    const x = tensor([1, 2], { requiresGrad: true });
    const step = (): void => scope(() => scaledSin(x, 2).sum().backward());
    step();
    const before = memory();
    for (let i = 0; i < 10; i++) step();
    expect(memory()).toEqual(before);
    const out = scaledSin(x, 2);
    expect(memory().tensors).toBe(before.tensors + 2);
    out.dispose();
    expect(memory().tensors).toBe(before.tensors);
  });

  test('refuses gradients that do not fit, and values that have changed', () => {
    const x = tensor([1, 2], { requiresGrad: true });
    const wrong = (backward: () => Tensor[]): Tensor =>
      customFunction<[Tensor]>({ name: 'wrong', forward: (_, a) => a.mul(1), backward })(x).sum();
    expect(() => wrong(() => []).backward()).toThrow(
      'wrong: expected a gradient, or null, for each of 1 inputs, got 0',
    );
    expect(() => wrong(() => [tensor([1])]).backward()).toThrow(
      'expected a gradient of float32 [2], got float32 [1]',
    );
    const y = tensor([3, 4]);
    const loss = product(x, y).sum();
    y.fill_(0);
    expect(codeOf(() => loss.backward())).toBe('ERR_TENSOR_AUTOGRAD');
  });
});

test('a gradient that is no tensor is refused with a sentence', () => {
  const wrong = customFunction<[Tensor]>({
    name: 'wrong',
    forward: (_, x) => x.mul(2),
    backward: () => [5 as never],
  });
  const x = tensor([1], { requiresGrad: true });
  expect(() => wrong(x).sum().backward()).toThrow('wrong: expected a gradient of float32 [1], got 5.');
  x.registerHook(() => 'x' as never);
  expect(() => x.sum().backward()).toThrow("registerHook: expected a gradient of float32 [1], got 'x'.");
});

test('a backward that returns neither a tensor nor a list is refused with a sentence', () => {
  for (const [value, got] of [
    [undefined, 'undefined'],
    [5, '5'],
  ] as const) {
    const wrong = customFunction<[Tensor]>({
      name: 'wrong',
      forward: (_, x) => x.mul(2),
      backward: () => value as never,
    });
    expect(() =>
      wrong(tensor([1], { requiresGrad: true }))
        .sum()
        .backward(),
    ).toThrow(`wrong: expected a gradient, or null, for each of 1 inputs, got ${got}.`);
  }
});
