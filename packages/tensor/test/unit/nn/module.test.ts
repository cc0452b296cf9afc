// Tests lists and dictionaries of modules, buffers, hooks, freezing and conversion; nn.test.ts tests other parts of
// Module.
import { describe, expect, test } from 'vitest';
import { memory, noGrad, ones, relu, scope, type Tensor, tensor, zeros } from '../../../src/index.ts';
import {
  buffer,
  Linear,
  Module,
  ModuleDict,
  ModuleList,
  parameter,
  ReLU,
  Sequential,
} from '../../../src/nn/index.ts';
import { SGD } from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';

/** A module with a parameter and with buffers: a float one, an integer one, and one that is not saved. */
class Centre extends Module {
  readonly shift = parameter(zeros([2]));
  readonly mean = buffer(zeros([2]));
  readonly calls = buffer(tensor(0n));
  readonly scratch = buffer(ones([2]), { persistent: false });

  forward(x: Tensor): Tensor {
    return x.sub(this.mean).add(this.shift);
  }
}

class Net extends Module {
  readonly body = new ModuleList([new Linear(2, 2), new Linear(2, 2)]);
  readonly heads = new ModuleDict({ a: new Linear(2, 1), b: new Linear(2, 3, { bias: false }) });
  readonly centre = new Centre();

  forward(x: Tensor): Tensor {
    let h = this.centre.forward(x);
    for (const layer of this.body) h = relu(layer.forward(h));
    return this.heads.get('a')!.forward(h);
  }
}

const names = (named: readonly [string, unknown][]): string[] => named.map(([name]) => name);

describe('what a module holds', () => {
  test('lists and dictionaries name their members as in PyTorch', () => {
    const net = new Net();
    expect(names(net.namedParameters())).toEqual([
      ...['body.0.weight', 'body.0.bias', 'body.1.weight', 'body.1.bias'],
      ...['heads.a.weight', 'heads.a.bias', 'heads.b.weight', 'centre.shift'],
    ]);
    expect(names(net.namedModules())).toEqual([
      ...['', 'body', 'body.0', 'body.1', 'heads', 'heads.a', 'heads.b', 'centre'],
    ]);
    expect(names(net.namedChildren())).toEqual(['body', 'heads', 'centre']);
    expect(net.children()).toEqual([net.body, net.heads, net.centre]);
    expect(net.modules()[0]).toBe(net);
    net.body.push(new Linear(2, 2, { bias: false }));
    expect([net.body.length, net.body.at(-1)!.parameters().length]).toEqual([3, 1]);
    net.heads.set('c', new Linear(2, 1));
    expect(names([...net.heads])).toEqual(['a', 'b', 'c']);
  });

  test('a shared module appears once, a module that holds itself ends', () => {
    class Tied extends Module {
      readonly a = new Linear(2, 2);
      readonly list = [this.a];
      readonly self = this;
    }
    const tied = new Tied();
    expect(names(tied.namedModules())).toEqual(['', 'a']);
    expect(tied.children()).toEqual([tied.a, tied]);
    const seen: Module[] = [];
    tied.apply((module) => seen.push(module));
    expect(seen).toEqual([tied.a, tied]);
  });

  test('apply goes from the leaves to the root', () => {
    const net = new Net();
    const order: Module[] = [];
    net.apply((module) => order.push(module));
    expect(order).toEqual([
      ...net.body,
      net.body,
      ...Array.from(net.heads, ([, m]) => m),
      net.heads,
      net.centre,
      net,
    ]);
  });
});

describe('buffers', () => {
  test('are saved and loaded when persistent, and never trained', () => {
    const [a, b] = [new Net(), new Net()];
    expect(names(a.namedBuffers())).toEqual(['centre.mean', 'centre.calls', 'centre.scratch']);
    expect(a.buffers().some((tensor) => tensor.requiresGrad)).toBe(false);
    expect(Object.keys(a.stateDict()).filter((name) => name.startsWith('centre'))).toEqual([
      'centre.shift',
      'centre.mean',
      'centre.calls',
    ]);
    a.centre.mean.fill_(3);
    a.centre.calls.fill_(7);
    expect(b.loadStateDict(a.stateDict())).toEqual({ missing: [], unexpected: [] });
    expect([b.centre.mean.toArray(), b.centre.calls.item()]).toEqual([[3, 3], 7]);
  });

  test('live through scopes and backward', () => {
    const centre = scope(() => new Centre());
    scope(() =>
      centre
        .forward(ones([1, 2]))
        .sum()
        .backward(),
    );
    expect(centre.buffers().some((tensor) => tensor.isDisposed)).toBe(false);
  });

  test('offer their memory to distributed training', () => {
    const net = new Net() as unknown as Record<
      symbol,
      () => { name: string; value: { host: Float32Array } }[]
    >;
    const offered = net[Symbol.for('ringwise.buffers')]!();
    expect(offered.map(({ name }) => name)).toEqual(['centre.mean', 'centre.calls', 'centre.scratch']);
    offered[0]!.value.host.fill(5);
    expect((net as unknown as Net).centre.mean.toArray()).toEqual([5, 5]);
  });
});

describe('loadStateDict', () => {
  test('without strict it returns the names that are missing or unexpected', () => {
    const net = new Net();
    const { 'centre.mean': _, ...dict } = net.stateDict();
    expect(net.loadStateDict({ ...dict, extra: ones([1]) }, { strict: false })).toEqual({
      missing: ['centre.mean'],
      unexpected: ['extra'],
    });
    expect(codeOf(() => net.loadStateDict(dict))).toBe('ERR_TENSOR_STATE_DICT');
  });

  test('a value that backward had saved cannot be replaced unnoticed', () => {
    const layer = new Linear(2, 2);
    const loss = layer.forward(tensor([[1, 2]], { requiresGrad: true })).sum();
    layer.loadStateDict({ weight: ones([2, 2]), bias: ones([2]) });
    expect(() => loss.backward()).toThrow("a value that 'linear' saved was changed");
  });
});

describe('hooks', () => {
  test('change arguments and results, in the order of registration, until they are removed', () => {
    const layer = new Sequential(new ReLU());
    const x = tensor([-1, 2]);
    const seen: unknown[] = [];
    const stops = [
      layer.layers[0]!.registerForwardPreHook((module, [input]) => {
        seen.push(module);
        return [(input as Tensor).add(3)];
      }),
      layer.layers[0]!.registerForwardHook((_, [input], output) => {
        seen.push((input as Tensor).toArray());
        return (output as Tensor).mul(10);
      }),
      layer.layers[0]!.registerForwardHook((_, __, output) => {
        seen.push((output as Tensor).toArray());
      }),
    ];
    expect(layer.forward(x).toArray()).toEqual([20, 50]);
    expect(seen).toEqual([layer.layers[0], [2, 5], [20, 50]]);
    expect(names(layer.namedModules())).toEqual(['', '0']);
    for (const stop of [...stops, ...stops]) stop();
    expect(layer.forward(x).toArray()).toEqual([0, 2]);
    expect(Object.getOwnPropertyNames(layer.layers[0])).not.toContain('forward');
    const stop = layer.registerForwardHook((_, __, output) => (output as Tensor).neg());
    stops[0]!();
    expect(layer.forward(x).toArray()).toEqual([-0, -2]);
    stop();
    // A forward of the module's own comes back after the last hook.
    const own = new ReLU();
    own.forward = (input) => input.mul(3);
    own.registerForwardHook((_, __, output) => (output as Tensor).neg())();
    expect(own.forward(x).toArray()).toEqual(x.mul(3).toArray());
  });
});

describe('freezing', () => {
  test('frozen parameters get no gradient, and are still saved', () => {
    const net = new Net();
    net.body.requiresGrad_(false);
    scope(() =>
      net
        .forward(ones([3, 2]))
        .sum()
        .backward(),
    );
    expect(net.body.parameters().every((p) => p.grad === null)).toBe(true);
    expect(net.heads.get('a')!.bias!.grad!.toArray()).toEqual([3]);
    expect(Object.keys(net.stateDict())).toHaveLength(10);
    expect(
      net
        .requiresGrad_()
        .parameters()
        .every((p) => p.requiresGrad),
    ).toBe(true);
  });
});

describe('to', () => {
  test('converts floats in place, with gradients, for an optimiser that holds them', () => {
    const net = new Net();
    const weight = net.body.at(0)!.weight;
    const optimizer = new SGD(net.parameters(), { lr: 0.5 });
    scope(() =>
      net
        .forward(ones([3, 2]))
        .sum()
        .backward(),
    );
    const grads = net.parameters().map((p) => p.grad?.toArray());
    const before = weight.toArray();
    expect(net.to('float64')).toBe(net);
    expect(net.body.at(0)!.weight).toBe(weight);
    expect([weight.dtype, weight.toArray(), weight.requiresGrad, weight.isLeaf]).toEqual([
      'float64',
      before,
      true,
      true,
    ]);
    expect(net.parameters().map((p) => p.grad?.toArray())).toEqual(grads);
    expect(net.parameters()[0]!.grad!.dtype).toBe('float64');
    expect([net.centre.mean.dtype, net.centre.calls.dtype]).toEqual(['float64', 'int64']);
    const out = noGrad(() => net.forward(ones([1, 2], { dtype: 'float64' })));
    expect(out.dtype).toBe('float64');
    net.to('float32');
    optimizer.step();
    expect(net.heads.get('a')!.bias!.dtype).toBe('float32');
  });

  test('keeps readiness listeners, and leaves no memory behind', () => {
    const layer = new Linear(2, 2);
    let ready = 0;
    layer.weight.onGradReady(() => ready++);
    const before = memory();
    layer.to('float64').to('float32');
    expect({ ...memory(), peakBytes: 0, cachedBytes: 0 }).toEqual({
      ...before,
      peakBytes: 0,
      cachedBytes: 0,
    });
    scope(() =>
      layer
        .forward(ones([1, 2]))
        .sum()
        .backward(),
    );
    expect(ready).toBe(1);
  });

  test('refuses integers, gradients that are bound, and graphs over the value before', () => {
    const layer = new Linear(2, 2);
    expect(codeOf(() => layer.to('int32'))).toBe('ERR_TENSOR_DTYPE');
    const loss = layer.forward(tensor([[1, 2]], { requiresGrad: true })).sum();
    layer.to('float64').to('float32');
    expect(codeOf(() => loss.backward())).toBe('ERR_TENSOR_AUTOGRAD');
    layer.weight.bindGrad(new Float32Array(4));
    expect(() => layer.to('float64')).toThrow('Convert the module before it is wrapped');
    expect(layer.weight.dtype).toBe('float32');
  });

  test('converts all or nothing', () => {
    const layer = new Linear(2, 2);
    layer.bias!.bindGrad(new Float32Array(2));
    expect(() => layer.to('float64')).toThrow('Convert the module before it is wrapped');
    expect([layer.weight.dtype, layer.bias!.dtype]).toEqual(['float32', 'float32']);
  });
});

test('a state dict refuses two tensors of one name, of which one would be lost', () => {
  class Twice extends Module {
    readonly inner = new Linear(1, 1);
    readonly 'inner.weight' = parameter(ones([3]));
  }
  expect(() => new Twice().stateDict()).toThrow(
    "stateDict: two tensors of Twice have the name 'inner.weight'; expected a name for each. Rename a field; ",
  );
  expect(codeOf(() => new Twice().loadStateDict({}))).toBe('ERR_TENSOR_STATE_DICT');
});

test('a hook before forward may return one tensor, as in PyTorch, and nothing else but a list', () => {
  const net = new Linear(1, 1, { bias: false });
  const x = ones([1, 1]);
  const twice = net.forward(x.mul(2)).item();
  const remove = net.registerForwardPreHook(() => x.mul(2));
  expect(net.forward(x).item()).toBe(twice);
  remove();
  for (const value of [5, 'x', {}, Promise.resolve()]) {
    const stop = net.registerForwardPreHook(() => value as never);
    expect(() => net.forward(x)).toThrow('registerForwardPreHook: the hook returned ');
    stop();
  }
});
