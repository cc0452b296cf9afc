// Tests backward, requiresGrad, gradCheck, the hooks of gradients, and bindGrad.
import { afterEach, describe, expect, test } from 'vitest';
import {
  arange,
  conv2d,
  crossEntropy,
  generator,
  gradCheck,
  linear,
  memory,
  noGrad,
  onBackwardEnd,
  ones,
  randn,
  relu,
  type Tensor,
  tensor,
  zeros,
} from '../../../src/index.ts';
import { Linear } from '../../../src/nn/index.ts';
import { SGD } from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';

const leaf = (data: number[]): Tensor => tensor(data, { requiresGrad: true });
const seeded = (...shape: number[]): Tensor =>
  randn(shape, { generator: generator(shape.length + 20), requiresGrad: true });

describe('backward', () => {
  test('adds up the contributions of a tensor that is used several times', () => {
    const x = leaf([2, 3]);
    x.mul(x).add(x).add(x).sum().backward();
    expect(x.grad!.toArray()).toEqual([6, 8]);
  });

  test('accumulates over calls until zeroGrad', () => {
    const x = leaf([1, 2]);
    for (const want of [1, 2, 3]) {
      x.sum().backward();
      expect(x.grad!.toArray()).toEqual([want, want]);
    }
    x.zeroGrad();
    expect(x.grad).toBeNull();
    x.sum().backward();
    x.zeroGrad({ setToNull: false });
    expect(x.grad!.toArray()).toEqual([0, 0]);
    x.mul(5).sum().backward();
    expect(x.grad!.toArray()).toEqual([5, 5]);
  });

  test('adds to what the program has written into a gradient that it read after zeroGrad', () => {
    const x = leaf([1, 2]);
    x.sum().backward();
    x.zeroGrad({ setToNull: false });
    x.grad!.add_(10);
    x.sum().backward();
    expect(x.grad!.toArray()).toEqual([11, 11]);
  });

  test('does not let two gradients share memory', () => {
    const [x, y] = [leaf([1]), leaf([2])];
    x.add(y).backward(tensor([1]));
    x.grad!.dataSync()[0] = 50;
    expect(y.grad!.toArray()).toEqual([1]);
    const seed = tensor([7]);
    x.backward(seed);
    expect(seed.toArray()).toEqual([7]);
    expect(x.grad!.toArray()).toEqual([57]);
  });

  test('adds to a gradient that another branch still reads', () => {
    // The gradient of h arrives twice; the first one is memory that another node uses, too.
    const x = leaf([1, 2]);
    const h = x.mul(3);
    h.add(h.reshape([2]))
      .add(h)
      .sum()
      .backward();
    expect(x.grad!.toArray()).toEqual([9, 9]);
  });

  test('takes the gradient of a tensor with many elements', () => {
    const x = leaf([1, 2]);
    x.square().backward(tensor([10, 100]));
    expect(x.grad!.toArray()).toEqual([20, 400]);
    expect(() => x.square().backward()).toThrow('expected a tensor with one element, got shape [2]');
    expect(codeOf(() => x.square().backward(zeros([2, 1])))).toBe('ERR_TENSOR_AUTOGRAD');
    expect(codeOf(() => x.square().backward(zeros([2], { dtype: 'int32' })))).toBe('ERR_TENSOR_DTYPE');
  });

  test('runs once, or more often with retainGraph', () => {
    const x = leaf([3]);
    const y = x.square().mul(2);
    y.backward(null, { retainGraph: true });
    y.backward();
    expect(x.grad!.toArray()).toEqual([24]);
    expect(() => y.backward()).toThrow("the graph was freed by an earlier backward (reached 'mul')");
    expect(x.grad!.toArray()).toEqual([24]);
  });

  test('needs something that requires a gradient', () => {
    expect(codeOf(() => tensor([1]).mul(2).backward())).toBe('ERR_TENSOR_AUTOGRAD');
    expect(codeOf(() => noGrad(() => leaf([1]).mul(2)).backward())).toBe('ERR_TENSOR_AUTOGRAD');
    expect(codeOf(() => leaf([1]).detach().mul(2).backward())).toBe('ERR_TENSOR_AUTOGRAD');
  });

  // A call takes about 120,000 arguments, so a list of so many operations cannot be spread into one.
  test('survives a graph of 130,000 operations', () => {
    const x = leaf([1]);
    let y: Tensor = x;
    for (let i = 0; i < 130_000; i++) y = y.add(0.5);
    y.backward();
    expect(x.grad!.toArray()).toEqual([1]);
    let z: Tensor = x;
    for (let i = 0; i < 50_000; i++) {
      const next = z.add(0.5);
      if (z !== x) z.dispose();
      z = next;
    }
    z.dispose();
  });
});

describe('requiresGrad', () => {
  test('can be set on leaves, and removes the gradient', () => {
    const x = tensor([1, 2]);
    x.requiresGrad = true;
    const y = x.mul(2);
    expect([x.isLeaf, y.isLeaf, y.requiresGrad]).toEqual([true, false, true]);
    y.sum().backward();
    x.requiresGrad = false;
    expect(x.grad).toBeNull();
    expect(x.mul(2).requiresGrad).toBe(false);
  });

  test('keeps listeners and hooks for when it is set again', () => {
    const x = leaf([1, 2]);
    const events: string[] = [];
    x.onGradReady(() => events.push(`ready ${x.grad?.toArray()}`));
    x.registerHook((g) => g.mul(10));
    const earlier = x.mul(3);
    x.requiresGrad = false;
    // This graph was recorded before; its gradient must not appear later.
    earlier.sum().backward();
    x.requiresGrad = true;
    expect(x.grad).toBeNull();
    events.length = 0;
    x.mul(2).sum().backward();
    expect([events, x.grad!.toArray()]).toEqual([['ready 20,20'], [20, 20]]);
  });

  test('set again after a change of dtype gives gradients of the new dtype', () => {
    const layer = new Linear(1, 1, { bias: false });
    layer.weight.onGradReady(() => {});
    layer.requiresGrad_(false).to('float64').requiresGrad_();
    layer
      .forward(ones([1, 1], { dtype: 'float64' }))
      .sum()
      .backward();
    expect([layer.weight.grad!.dtype, layer.weight.grad!.toArray()]).toEqual(['float64', [[1]]]);
  });

  test('is refused for results of operations and for integers', () => {
    const y = leaf([1]).mul(2);
    expect(
      codeOf(() => {
        y.requiresGrad = false;
      }),
    ).toBe('ERR_TENSOR_AUTOGRAD');
    expect(codeOf(() => tensor([1], { dtype: 'int32', requiresGrad: true }))).toBe('ERR_TENSOR_DTYPE');
    expect(codeOf(() => y.zeroGrad())).toBe('ERR_TENSOR_AUTOGRAD');
  });
});

describe('gradCheck', () => {
  test('accepts an MLP with a loss', () => {
    const labels = tensor([0, 2, 1], { dtype: 'int32' });
    gradCheck(
      (x, w1, b1, w2, b2) => crossEntropy(linear(linear(x!, w1!, b1!).tanh(), w2!, b2!), labels),
      [seeded(3, 4), seeded(5, 4), seeded(5), seeded(3, 5), seeded(3)],
    );
  });

  test('an input that is not used has the gradient 0', () => {
    gradCheck((x) => x!.square(), [leaf([1, 2]), leaf([3])]);
  });

  test('refuses inputs of which it cannot take differences, and sets back what it has changed', () => {
    const half = tensor([1, 2], { dtype: 'float16', requiresGrad: true });
    for (const input of [half, leaf([1, 2]).neg(), 3 as never])
      expect(codeOf(() => gradCheck((x) => x!.neg(), [input]))).toBe('ERR_TENSOR_ARGUMENT');
    const x = leaf([1, 2]);
    let calls = 0;
    const fails = (y?: Tensor): Tensor => {
      if (calls++ === 2) throw new Error('at the second difference');
      return y!.neg();
    };
    expect(() => gradCheck(fails, [x])).toThrow('at the second difference');
    expect(x.toArray()).toEqual([1, 2]);
  });

  test('finds a gradient that is wrong', () => {
    expect(codeOf(() => gradCheck((x) => x!.mul(x!.detach()), [leaf([1, 2])]))).toBe('ERR_TENSOR_GRAD_CHECK');
    expect(() => gradCheck((x) => x!.mul(x!.detach()), [leaf([1, 2])])).toThrow(
      /gradient of input 0 at element 0 is 1.39\d+, but finite differences give 2.78\d+/,
    );
  });
});

describe('hooks', () => {
  const unsubscribe: (() => void)[] = [];
  afterEach(() => {
    for (const stop of unsubscribe.splice(0)) stop();
  });

  test('onGradReady is called once per backward, when the gradient is final, late layers first', () => {
    const [w1, w2] = [leaf([2]), leaf([3])];
    const events: string[] = [];
    const ready = (name: string, w: Tensor): void => {
      unsubscribe.push(w.onGradReady(() => events.push(`${name} ${w.grad!.toArray()}`)));
    };
    ready('w1', w1);
    ready('w2', w2);
    unsubscribe.push(onBackwardEnd(() => events.push('end')));
    // w1 is used twice: 2·w1 + w1 = 3·w1, times w2.
    w1.mul(2).add(w1).mul(w2).backward();
    expect(events).toEqual(['w2 6', 'w1 9', 'end']);
    w2.mul(1).backward();
    expect(events.slice(3)).toEqual(['w2 7', 'end']);
  });

  test('in linear the parameters are ready before the gradient of the input is computed', () => {
    const [x, w, b] = [seeded(2, 3), seeded(4, 3), seeded(4)];
    const order: string[] = [];
    for (const [name, t] of Object.entries({ x, w, b })) {
      unsubscribe.push(
        t.onGradReady(() => order.push(`${name}, x is ${x.grad === null ? 'open' : 'there'}`)),
      );
    }
    linear(x, w, b).sum().backward();
    expect(order).toEqual(['b, x is open', 'w, x is open', 'x, x is there']);
  });

  test('the same function can be added twice; unsubscribing removes one of them', () => {
    const x = leaf([1]);
    let calls = 0;
    const count = (): number => ++calls;
    const stop = x.onGradReady(count);
    x.onGradReady(count);
    x.mul(1).backward();
    stop();
    x.mul(1).backward();
    expect(calls).toBe(3);
  });

  test('all listeners of the end are called, also where one throws; backward throws the first error', () => {
    const events: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      const listener = () => {
        events.push(name);
        if (name !== 'c') throw new Error(`from ${name}`);
      };
      unsubscribe.push(onBackwardEnd(listener));
    }
    expect(() => leaf([1]).mul(2).backward()).toThrow('from a');
    expect(events).toEqual(['a', 'b', 'c']);
  });

  test('an error in a hook leaves backward, and the next backward is right', () => {
    const x = leaf([1]);
    const stop = x.onGradReady(() => {
      throw new Error('from the hook');
    });
    expect(() => x.mul(2).mul(3).backward()).toThrow('from the hook');
    stop();
    x.zeroGrad();
    x.mul(2).mul(3).backward();
    expect(x.grad!.toArray()).toEqual([6]);
  });
});

describe('bindGrad', () => {
  test('makes the gradient live in the given memory for good', () => {
    const bucket = new Float32Array([9, 9, 9, 9, 9]);
    const [w, b] = [leaf([1, 2, 3]), leaf([4])];
    w.mul(2).sum().backward();
    w.bindGrad(bucket.subarray(0, 3));
    b.bindGrad(bucket.subarray(4));
    expect([...bucket]).toEqual([2, 2, 2, 9, 0]);
    w.mul(b).sum().backward();
    expect([...bucket]).toEqual([6, 6, 6, 9, 6]);
    expect(w.grad!.toArray()).toEqual([6, 6, 6]);
    w.zeroGrad();
    b.zeroGrad({ setToNull: false });
    expect([...bucket.subarray(3)]).toEqual([9, 0]);
    expect(w.grad!.toArray()).toEqual([0, 0, 0]);
    expect([...bucket]).toEqual([0, 0, 0, 9, 0]);
    w.sum().backward();
    w.zeroGrad();
    bucket.fill(100);
    w.sum().backward();
    expect([...bucket]).toEqual([1, 1, 1, 100, 100]);
  });

  test('adds to what the owner of the memory has written, also after zeroGrad if the gradient was read', () => {
    const bucket = new Float32Array(2);
    const w = leaf([1, 2]);
    w.bindGrad(bucket);
    bucket.fill(10);
    w.sum().backward();
    expect([...bucket]).toEqual([11, 11]);
    w.zeroGrad();
    expect(w.grad!.toArray()).toEqual([0, 0]);
    bucket.fill(20);
    w.sum().backward();
    expect([...bucket]).toEqual([21, 21]);
  });

  test('once cleared, it is zero for an optimiser and for memory that takes its place', () => {
    const bucket = new Float32Array([7, 7]);
    const w = leaf([1, 2]);
    w.bindGrad(bucket);
    w.sum().backward();
    w.zeroGrad();
    new SGD([w], { lr: 1 }).step();
    expect(w.toArray()).toEqual([1, 2]);
    w.sum().backward();
    w.zeroGrad();
    const other = new Float32Array([5, 5]);
    w.bindGrad(other);
    expect([...other]).toEqual([0, 0]);
  });

  test('tells of the end of a backward that ran inside another one when both are over', () => {
    const [outer, inner] = [leaf([1, 2]), leaf([3, 4])];
    const events: string[] = [];
    const stop = onBackwardEnd(() => events.push('end'));
    outer.onGradReady(() => events.push('outer'));
    inner.onGradReady(() => events.push('inner'));
    const hidden = outer.mul(2);
    const other = inner.sum();
    hidden.registerHook(() => {
      other.backward();
      return undefined;
    });
    hidden.sum().backward();
    stop();
    expect(events).toEqual(['inner', 'outer', 'end']);
  });

  test.each(['linear', 'matmul'] as const)('%s writes and accumulates in it', (op) => {
    const [x, w] = [seeded(2, 3), seeded(3, 3)];
    const forward = (): Tensor => (op === 'linear' ? linear(x, w, null) : x.matmul(w));
    forward().sum().backward();
    const want = w.grad!.dataSync().slice() as Float32Array;
    const bucket = new Float32Array(9);
    w.zeroGrad();
    w.bindGrad(bucket);
    forward().sum().backward();
    expect(bucket).toEqual(want);
    forward().sum().backward();
    expect(bucket).toEqual(want.map((g) => g + g));
  });

  test('refuses memory of another size or type, and tensors without a gradient of their own', () => {
    const x = leaf([1, 2]);
    expect(() => x.bindGrad(new Float32Array(3))).toThrow(
      'expected an array of 2 elements of float32, got Float32Array of 3',
    );
    expect(codeOf(() => x.bindGrad(new Int32Array(2) as never))).toBe('ERR_TENSOR_AUTOGRAD');
    expect(codeOf(() => relu(x).bindGrad(new Float32Array(2)))).toBe('ERR_TENSOR_AUTOGRAD');
  });
});

describe('saved values', () => {
  const x = (): Tensor => arange(1, 5).reshape([1, 1, 2, 2]);
  const operations: Record<string, (a: Tensor, b: Tensor) => Tensor> = {
    mul: (a, b) => a.mul(b),
    div: (a, b) => a.div(b),
    matmul: (a, b) => a.matmul(b),
    linear: (a, b) => linear(a, b.reshape([2, 2])),
    conv2d: (a, b) => conv2d(a, b),
  };
  test.each(Object.entries(operations))(
    '%s saves only what the gradients that are wanted read',
    (name, op) => {
      const [a, b] = [x(), x()];
      a.requiresGrad = true;
      const loss = op(a, b).sum();
      noGrad(() => a.add_(1)); // no gradient of a reads a
      loss.backward();
      const wanted = x();
      wanted.requiresGrad = true;
      op(wanted, b).sum().backward();
      expect(a.grad!.toArray()).toEqual(wanted.grad!.toArray());
      const late = op(a, b).sum();
      b.add_(1);
      expect(() => late.backward(), name).toThrow('was changed in place');
    },
  );

  test.each([
    ['mul by a number', (a: Tensor) => a.mul(2)],
    ['a frozen linear layer', (a: Tensor) => linear(a, ones([4, 4]))],
  ])('%s keeps no input', (_, op) => {
    const a = randn([4, 4], { requiresGrad: true });
    const input = a.add(1);
    const out = op(input);
    const held = memory().tensors;
    input.dispose();
    expect(memory().tensors).toBe(held - 1);
    out.sum().backward();
    expect(a.grad!.shape).toEqual([4, 4]);
  });
});
