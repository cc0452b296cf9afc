// Tests registerHook, retainGrad and grad().
import { describe, expect, test } from 'vitest';
import { grad, memory, mul, onBackwardEnd, ones, scope, type Tensor, tensor } from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';

const leaf = (...values: number[]): Tensor => tensor(values, { requiresGrad: true });

describe('registerHook', () => {
  test('sees the complete gradient of a result, and may put another in its place', () => {
    const x = leaf(1, 2);
    const y = x.mul(3);
    const seen: unknown[] = [];
    y.registerHook((g) => {
      seen.push(g.toArray());
      return g.mul(10);
    });
    const stop = y.registerHook((g) => {
      seen.push(g.toArray());
    });
    y.add(y).sum().backward(null, { retainGraph: true });
    expect(seen).toEqual([
      [2, 2],
      [20, 20],
    ]);
    expect(x.grad!.toArray()).toEqual([60, 60]);
    stop();
    y.sum().backward();
    expect(seen).toHaveLength(3);
  });

  test('of a leaf sees what this backward adds, once, before it is added and ready', () => {
    const x = leaf(1, 2);
    x.mul(5).sum().backward();
    const seen: unknown[] = [];
    x.onGradReady(() => seen.push(['ready', x.grad!.toArray()]));
    const stop = x.registerHook((g) => {
      seen.push(['hook', g.toArray()]);
      return g.neg();
    });
    mul(x, 2).add(x).sum().backward();
    expect(seen).toEqual([
      ['hook', [3, 3]],
      ['ready', [2, 2]],
    ]);
    stop();
    x.sum().backward();
    expect(x.grad!.toArray()).toEqual([3, 3]);
  });

  test('of a leaf works with a gradient that is bound, or filled with zero', () => {
    const x = leaf(1, 2);
    const bucket = new Float32Array(2);
    x.bindGrad(bucket);
    x.registerHook((g) => g.mul(2));
    x.sum().backward();
    x.sum().backward();
    expect([...bucket]).toEqual([4, 4]);
    x.zeroGrad();
    x.sum().backward();
    expect([...bucket]).toEqual([2, 2]);
  });

  test('a gradient of another shape or dtype is refused, and the earlier gradient stays', () => {
    const x = leaf(1, 2);
    x.sum().backward();
    const stop = x.registerHook((g) => g.sum());
    expect(() => x.sum().backward()).toThrow(
      'registerHook: expected a gradient of float32 [2], got float32 []',
    );
    stop();
    expect(x.grad!.toArray()).toEqual([1, 1]);
    x.registerHook((g) => g.to('float64'));
    expect(codeOf(() => x.sum().backward())).toBe('ERR_TENSOR_AUTOGRAD');
    expect(codeOf(() => ones([1]).registerHook(() => undefined))).toBe('ERR_TENSOR_AUTOGRAD');
  });

  test('a loop with hooks uses constant memory', () => {
    const x = leaf(1, 2);
    x.registerHook((g) => g.mul(2));
    const step = (): void =>
      scope(() => {
        const y = x.mul(3);
        y.registerHook((g) => g.add(1));
        y.sum().backward();
      });
    step();
    const before = memory();
    for (let i = 0; i < 20; i++) step();
    expect(memory()).toEqual(before);
    expect(x.grad!.toArray()).toEqual([252, 252]);
  });
});

describe('retainGrad', () => {
  test('keeps the gradient of a result, and adds up', () => {
    const x = leaf(1, 2);
    const y = x.mul(3);
    y.retainGrad();
    y.retainGrad();
    const loss = y.square().sum();
    loss.backward(null, { retainGraph: true });
    expect(y.grad!.toArray()).toEqual([6, 12]);
    loss.backward();
    expect(y.grad!.toArray()).toEqual([12, 24]);
    expect([y.isDisposed, x.grad!.toArray()]).toEqual([false, [36, 72]]);
    const before = memory().tensors;
    y.dispose();
    expect(memory().tensors).toBe(before - 2);
  });

  test('keeps the gradient that all hooks leave, also those added later', () => {
    const x = leaf(1, 2);
    const y = x.mul(2);
    y.registerHook((gradient) => gradient.add(1));
    y.retainGrad();
    const remove = y.registerHook((gradient) => gradient.mul(100));
    y.registerHook((gradient) => gradient.mul(10));
    remove();
    y.sum().backward();
    // With register_hook() and retain_grad(), PyTorch 2.13 gives the same.
    expect([y.grad!.toArray(), x.grad!.toArray()]).toEqual([
      [20, 20],
      [40, 40],
    ]);
  });

  test('does nothing on a leaf, and needs a graph', () => {
    const x = leaf(1);
    x.retainGrad();
    x.backward();
    expect(x.grad!.toArray()).toEqual([1]);
    expect(codeOf(() => ones([1]).retainGrad())).toBe('ERR_TENSOR_AUTOGRAD');
  });
});

describe('grad', () => {
  test('gives gradients of leaves and of results, and leaves everything else alone', () => {
    const [x, w] = [leaf(1, 2), leaf(3, 4)];
    x.sum().backward();
    let calls = 0;
    x.onGradReady(() => calls++);
    const stop = onBackwardEnd(() => calls++);
    const y = x.mul(w);
    const [toX, toY] = grad(y.square().sum(), [x, y]);
    stop();
    expect([toX!.toArray(), toY!.toArray()]).toEqual([
      [18, 64],
      [6, 16],
    ]);
    expect([x.grad!.toArray(), w.grad, calls]).toEqual([[1, 1], null, 0]);
    expect([toX!.requiresGrad, y.isDisposed]).toEqual([false, false]);
    x.mul(w).sum().backward();
    expect([x.grad!.toArray(), calls]).toEqual([[4, 5], 1]);
  });

  test('sums over outputs, each with its own gradient', () => {
    const x = leaf(1, 2);
    const [g] = grad([x.mul(2), x.sum()], x, { gradOutputs: [tensor([1, 10])] });
    expect(g!.toArray()).toEqual([3, 21]);
    const [both] = grad([x, x.mul(3)], x, { gradOutputs: [tensor([1, 0]), tensor([1, 1])] });
    expect(both!.toArray()).toEqual([4, 3]);
  });

  test('does not run what leads nowhere', () => {
    const [x, w] = [leaf(1), leaf(2)];
    const side = w.mul(2);
    side.registerHook(() => expect.fail('ran'));
    expect(grad(x.mul(3).add(side).sum(), x)[0]!.toArray()).toEqual([3]);
  });

  test('gives back the gradients that come to what leads nowhere', () => {
    const before = memory().bytes;
    scope(() => {
      const [x, w] = [leaf(1, 2), leaf(3, 4, 5)];
      grad(x.mul(w.narrow(0, 1, 2)), x, { gradOutputs: [ones([2])] });
    });
    expect(memory().bytes).toBe(before);
  });

  test('an input that is not used is an error, or null', () => {
    const [x, w] = [leaf(1), leaf(2)];
    expect(() => grad(x.mul(2), [x, w])).toThrow('the outputs do not depend on input 1');
    expect(grad(x.mul(2), [x, w], { allowUnused: true }).map((g) => g?.item() ?? null)).toEqual([2, null]);
    expect(codeOf(() => grad(x, ones([1])))).toBe('ERR_TENSOR_AUTOGRAD');
    expect(codeOf(() => grad(ones([1]), x))).toBe('ERR_TENSOR_AUTOGRAD');
    expect(codeOf(() => grad(leaf(1, 2), x))).toBe('ERR_TENSOR_AUTOGRAD');
  });

  test('runs hooks, once, on what is taken', () => {
    const x = leaf(1, 2);
    x.registerHook((g) => g.mul(2));
    expect(grad(x.add(x).sum(), x)[0]!.toArray()).toEqual([4, 4]);
    expect(x.grad).toBeNull();
  });

  test('leaves no memory behind', () => {
    const x = leaf(1, 2);
    const step = (): void => scope(() => void grad(x.square().sum(), x));
    step();
    const before = memory();
    for (let i = 0; i < 20; i++) step();
    expect(memory()).toEqual(before);
  });
});
