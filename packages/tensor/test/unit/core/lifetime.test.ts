// Tests when tensors, graphs and scopes give memory back, and that loops use constant memory.
import { describe, expect, test } from 'vitest';
import {
  add,
  crossEntropy,
  emptyCache,
  fromHost,
  keep,
  linear,
  memory,
  noGrad,
  randn,
  relu,
  scope,
  type Tensor,
  tensor,
  zeros,
} from '../../../src/index.ts';
import { Linear, ReLU, Sequential } from '../../../src/nn/index.ts';
import { SGD } from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { collect } from '../../support/collected.ts';

const used = (): { tensors: number; bytes: number } => {
  const { tensors, bytes } = memory();
  return { tensors, bytes };
};

/** Returns a promise and the function that fulfils it. */
function gate(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

describe('dispose', () => {
  test('gives the memory back at once, exactly', () => {
    const before = used();
    const a = zeros([10, 10]);
    const b = tensor([1n, 2n]);
    expect(used()).toEqual({ tensors: before.tensors + 2, bytes: before.bytes + 416 });
    a.dispose();
    a.dispose();
    b[Symbol.dispose]();
    expect(used()).toEqual(before);
    expect([a.isDisposed, b.isDisposed]).toEqual([true, true]);
  });

  test('works with the using keyword', () => {
    const before = used();
    {
      using a = zeros([4]);
      using b = add(a, 1);
      expect(b.toArray()).toEqual([1, 1, 1, 1]);
    }
    expect(used()).toEqual(before);
  });

  test('a view keeps the memory until it is disposed too', () => {
    const before = used();
    const a = zeros([4]);
    const view = a.reshape([2, 2]);
    expect(used().tensors).toBe(before.tensors + 1);
    a.dispose();
    expect(view.toArray()).toEqual([
      [0, 0],
      [0, 0],
    ]);
    view.dispose();
    expect(used()).toEqual(before);
  });

  test('use after dispose throws an error of the package', () => {
    const a = zeros([2, 3]);
    a.dispose();
    expect(() => a.add(1)).toThrow(
      'tensor [2, 3]: used after it was disposed by dispose(), by the end of a scope',
    );
    for (const use of [() => a.item(), () => a.dataSync(), () => a.reshape([6]), () => a.toArray()]) {
      expect(codeOf(use)).toMatch(/DISPOSED|SHAPE/);
    }
    expect(String(a)).toBe('tensor(disposed, shape=[2, 3])');
  });

  test('memory is reused, and a fresh tensor never sees what was in it', () => {
    emptyCache();
    const a = tensor([1, 2, 3, 4, 5, 6, 7]);
    a.dispose();
    expect(memory().cachedBytes).toBe(28);
    const b = zeros([7]);
    expect(memory().cachedBytes).toBe(0);
    expect(b.toArray()).toEqual([0, 0, 0, 0, 0, 0, 0]);
    b.dispose();
    emptyCache();
    expect(memory().cachedBytes).toBe(0);
  });

  test('adopted memory belongs to the caller and is never reused', () => {
    const before = memory();
    const array = Float32Array.of(1, 2, 3);
    const a = fromHost(array);
    a.dataSync()[1] = 20;
    a.dispose();
    zeros([3]).dispose();
    expect([...array]).toEqual([1, 20, 3]);
    expect(used()).toEqual({ tensors: before.tensors, bytes: before.bytes });
  });

  test('a graph survives the disposal of the tensors that it reads', () => {
    const before = used();
    const w = tensor([2, 3], { requiresGrad: true });
    const x = tensor([5, 7]);
    const h = w.mul(x);
    const y = relu(h).sum();
    x.dispose();
    h.dispose();
    y.backward();
    expect(w.grad!.toArray()).toEqual([5, 7]);
    y.dispose();
    w.dispose();
    expect(used()).toEqual(before);
  });

  test('a graph that can no longer be run gives its memory back', () => {
    const w = tensor([2, 3], { requiresGrad: true });
    const before = used();
    const h = w.square().exp();
    const [a, b] = [h.tanh(), h.sigmoid()];
    const loss = b.sum();
    for (const t of [h, a, b]) t.dispose();
    loss.backward();
    loss.dispose();
    w.zeroGrad();
    expect(used()).toEqual(before);

    const unused = scope(() => w.square().exp().tanh());
    expect(used().tensors).toBeGreaterThan(before.tensors + 1);
    unused.dispose();
    expect(used()).toEqual(before);
    w.dispose();
  });
});

describe('the collector', () => {
  const collectUntil = async (isDone: () => boolean): Promise<void> => {
    for (const deadline = Date.now() + 60_000; Date.now() < deadline; ) {
      // Finalisers run in a task of their own, some rounds after the collection.
      for (let round = 0; round < 5; round++) {
        collect();
        await new Promise((resolve) => setImmediate(resolve));
      }
      if (isDone()) return;
    }
  };

  test('frees tensors and graphs that nothing refers to', async () => {
    const w = tensor([2, 3], { requiresGrad: true });
    const drop = (): void => {
      for (let i = 0; i < 100; i++)
        w.mul(zeros([2]))
          .exp()
          .sum();
    };
    drop();
    const dropped = used().tensors;
    // V8 may still hold a few of them in registers.
    await collectUntil(() => used().tensors <= dropped - 390);
    expect(used().tensors).toBeLessThanOrEqual(dropped - 390);
    w.dispose();
  });

  test('leaves memory alone that a typed array still refers to', async () => {
    const data = tensor([1, 2, 3]).add(1).dataSync();
    const dropped = used().tensors;
    const drop = (): void => void tensor([1, 2, 3]);
    drop();
    await collectUntil(() => used().tensors < dropped);
    for (let i = 0; i < 10; i++) zeros([3]);
    expect([...(data as Float32Array)]).toEqual([2, 3, 4]);
  });
});

test('a scope leaves the tensors that it returns in a map or a set, also further inside', () => {
  const before = used();
  const { byName, all } = scope(() => {
    zeros([3]);
    return { byName: new Map([['a', [zeros([1])]]]), all: new Set([new Map([[1, zeros([2])]])]) };
  });
  const left = [...byName.get('a')!, ...[...all].flatMap((map) => [...map.values()])];
  expect(left.map(({ isDisposed }) => isDisposed)).toEqual([false, false]);
  for (const each of left) each.dispose();
  expect(used()).toEqual(before);
});

describe('backward', () => {
  test('frees intermediate results, and leaves the loss, the inputs and what was kept', () => {
    const w = tensor([2, 3], { requiresGrad: true });
    const x = tensor([1, 1]);
    const hidden = w.mul(x);
    const kept = keep(hidden.exp());
    const loss = kept.sum();
    loss.backward();
    expect([hidden, kept, loss, x, w].map((t) => t.isDisposed)).toEqual([true, false, false, false, false]);
    expect(() => hidden.toArray()).toThrow('Read it before, or call keep(tensor).');
    for (const t of [w, x, kept, loss]) t.dispose();
  });

  test('leaves nothing behind, with or without retainGraph', () => {
    const w = tensor([[2, 3]], { requiresGrad: true });
    const before = used();
    for (const retain of [true, false]) {
      const loss = scope(() => {
        const loss = linear(randn([4, 2]), w, null)
          .relu()
          .square()
          .mean();
        if (retain) loss.backward(null, { retainGraph: true });
        loss.backward();
        return loss;
      });
      loss.dispose();
      w.zeroGrad();
      expect(used()).toEqual(before);
    }
    w.dispose();
  });
});

describe('scope', () => {
  test('disposes what was made inside, except what is returned or kept', () => {
    const before = used();
    let inner: Tensor | undefined;
    let kept: Tensor | undefined;
    const out = scope(() => {
      inner = zeros([2]);
      kept = keep(zeros([3]));
      return { list: [inner.add(1)], nested: { deep: inner.add(2) }, number: 3, self: null };
    });
    expect(inner!.isDisposed).toBe(true);
    expect(kept!.isDisposed).toBe(false);
    expect(out.list[0]!.toArray()).toEqual([1, 1]);
    expect(out.nested.deep.toArray()).toEqual([2, 2]);
    for (const t of [kept!, out.list[0]!, out.nested.deep]) t.dispose();
    expect(used()).toEqual(before);
  });

  test('nests: what an inner scope returns belongs to the outer one', () => {
    const before = used();
    const sum = scope(() => {
      const inner = scope(() => [zeros([2]).add(1), zeros([2])]);
      expect(used().tensors).toBe(before.tensors + 2);
      return inner[0]!.sum().item();
    });
    expect(sum).toBe(2);
    expect(used()).toEqual(before);
  });

  test('cleans up when the function throws or rejects', async () => {
    const before = used();
    expect(() =>
      scope(() => {
        zeros([5]);
        throw new Error('inside');
      }),
    ).toThrow('inside');
    await expect(
      scope(async () => {
        zeros([5]);
        await Promise.resolve();
        zeros([6]);
        throw new Error('later');
      }),
    ).rejects.toThrow('later');
    expect(used()).toEqual(before);
  });

  test('overlapping async scopes do not take each other’s tensors', async () => {
    const before = used();
    const gates = [gate(), gate()];
    const task = (i: number): Promise<Tensor> =>
      scope(async () => {
        const a = zeros([i + 1]);
        await gates[i]!.promise;
        expect(a.isDisposed).toBe(false);
        return a.add(i);
      });
    const [first, second] = [task(0), task(1)];
    gates[1]!.resolve();
    const b = await second;
    expect(used().tensors).toBe(before.tensors + 2);
    gates[0]!.resolve();
    const a = await first;
    expect([a.toArray(), b.toArray()]).toEqual([[0], [1, 1]]);
    a.dispose();
    b.dispose();
    expect(used()).toEqual(before);
  });

  test('leaves parameters, gradients and optimiser state alone', () => {
    const { layer, optimizer } = scope(() => {
      const layer = new Linear(2, 2);
      return { layer, optimizer: new SGD(layer.parameters(), { lr: 0.1, momentum: 0.9 }) };
    });
    scope(() => {
      layer
        .forward(zeros([1, 2]))
        .sum()
        .backward();
      optimizer.step();
    });
    expect(layer.bias!.grad!.toArray()).toEqual([1, 1]);
    expect(Object.values(optimizer.stateDict().tensors).some((t) => t.isDisposed)).toBe(false);
  });

  test('a task that outlives its scope gives its tensors to the outer scope', async () => {
    const before = used();
    const barrier = gate();
    await scope(async () => {
      let straggler: Promise<void> | undefined;
      scope(() => {
        straggler = barrier.promise.then(() => void zeros([3]));
      });
      barrier.resolve();
      await straggler;
      expect(used().tensors).toBe(before.tensors + 1);
    });
    expect(used()).toEqual(before);
  });
});

describe('noGrad', () => {
  test('records nothing inside, also across await, and everything outside', async () => {
    const w = tensor([1], { requiresGrad: true });
    const barrier = gate();
    const inside = noGrad(async () => {
      await barrier.promise;
      return scope(() => w.mul(2).requiresGrad);
    });
    expect(w.mul(2).requiresGrad).toBe(true);
    barrier.resolve();
    expect(await inside).toBe(false);
    expect(w.mul(2).requiresGrad).toBe(true);
  });
});

describe('a steady training loop', () => {
  const model = new Sequential(new Linear(8, 16), new ReLU(), new Linear(16, 4));
  const optimizer = new SGD(model.parameters(), { lr: 0.01, momentum: 0.9 });
  const inputs = new Float32Array(32).map((_, i) => Math.sin(i));
  const labels = Int32Array.of(0, 1, 2, 3);

  const step = (): number => {
    const x = fromHost(inputs, [4, 8]);
    const y = tensor(labels);
    const loss = crossEntropy(model.forward(x), y);
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    const value = loss.item();
    for (const t of [x, y, loss]) t.dispose();
    return value;
  };
  const withoutDispose = (): void => {
    const loss = crossEntropy(model.forward(fromHost(inputs, [4, 8])), tensor(labels));
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
  };

  test.each([
    ['with dispose', step],
    ['with scope', () => scope(withoutDispose)],
  ])('%s: 2,000 steps use constant memory', (_, run) => {
    for (let i = 0; i < 2; i++) run();
    const before = memory();
    for (let i = 0; i < 2000; i++) {
      run();
      expect(used()).toEqual({ tensors: before.tensors, bytes: before.bytes });
    }
    expect(memory().peakBytes).toBe(before.peakBytes);
    expect(memory().cachedBytes).toBe(before.cachedBytes);
  });

  test('evaluation in a scope uses constant memory', () => {
    const before = used();
    for (let i = 0; i < 100; i++) {
      scope(() =>
        noGrad(() =>
          model
            .forward(fromHost(inputs, [4, 8]))
            .argmax(1)
            .toArray(),
        ),
      );
      scope(() =>
        model
          .forward(fromHost(inputs, [4, 8]))
          .softmax()
          .toArray(),
      );
      expect(used()).toEqual(before);
    }
  });
});
