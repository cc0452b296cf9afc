// Tests Module, its state dict, Linear and Sequential, and what a module offers to a data-parallel wrapper.
import { describe, expect, test } from 'vitest';
import type { FrozenParam, GradParam } from '../../../src/core/protocol.ts';
import { manualSeed, memory, relu, scope, type Tensor, tensor, zeros } from '../../../src/index.ts';
import {
  Bilinear,
  Embedding,
  Flatten,
  GELU,
  LayerNorm,
  Linear,
  Module,
  parameter,
  ReLU,
  RMSNorm,
  Sequential,
} from '../../../src/nn/index.ts';
import { SGD } from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';

class Net extends Module {
  readonly first = new Linear(3, 4);
  readonly rest = [new Linear(4, 4), new Linear(4, 2, { bias: false })];
  readonly scale = parameter(tensor([2]));
  readonly notTrained = zeros([5]);

  forward(x: Tensor): Tensor {
    const h = relu(this.first.forward(x));
    return this.rest.reduce((h, layer) => layer.forward(h), h).mul(this.scale);
  }
}

describe('Module', () => {
  test('finds parameters in fields, modules and arrays, in the order of definition', () => {
    const net = new Net();
    expect(net.namedParameters().map(([name, { shape }]) => `${name} ${shape}`)).toEqual([
      'first.weight 4,3',
      'first.bias 4',
      'rest.0.weight 4,4',
      'rest.0.bias 4',
      'rest.1.weight 2,4',
      'scale 1',
    ]);
    expect(net.parameters().every((p) => p.requiresGrad && p.isLeaf)).toBe(true);
  });

  test('lists a shared parameter once, but saves it under both names; a cycle ends', () => {
    class Tied extends Module {
      readonly a = new Linear(2, 2);
      readonly b = this.a;
      readonly self = this;
    }
    const tied = new Tied();
    expect(tied.namedParameters().map(([name]) => name)).toEqual(['a.weight', 'a.bias']);
    expect(Object.keys(tied.stateDict())).toEqual(['a.weight', 'a.bias', 'b.weight', 'b.bias']);
  });

  test('ties weights by assignment: one parameter, with the gradients of both uses, saved under both names', () => {
    class Tied extends Module {
      readonly wte = new Embedding(5, 3);
      readonly head = new Linear(3, 5, { bias: false });
      constructor() {
        super();
        this.head.weight = this.wte.weight;
      }
      forward(tokens: Tensor): Tensor {
        return this.head.forward(this.wte.forward(tokens));
      }
    }
    const net = new Tied();
    expect(net.namedParameters().map(([name]) => name)).toEqual(['wte.weight']);
    net
      .forward(tensor([1n]))
      .sum()
      .backward();
    // The head gets the row of token 1 for each class, and row 1 also gets the sum of all rows, as the embedding's.
    const { weight } = net.wte;
    const row = weight.at(1).toArray() as number[];
    const sums = weight.sum(0).toArray() as number[];
    const gradient = net.head.weight.grad!.toArray() as number[][];
    for (const [token, values] of gradient.entries())
      for (const [k, value] of values.entries())
        expect(value).toBeCloseTo(row[k]! + (token === 1 ? sums[k]! : 0), 5);
    const before = weight.toArray();
    new SGD(net.parameters(), { lr: 0.1 }).step();
    expect(net.head.weight.toArray()).toEqual(weight.toArray());
    expect(weight.toArray()).not.toEqual(before);
    const other = new Tied();
    expect(other.loadStateDict(net.stateDict())).toEqual({ missing: [], unexpected: [] });
    expect(other.head.weight.toArray()).toEqual(weight.toArray());
    expect(other.head.weight).toBe(other.wte.weight);
  });

  test('train and eval reach every sub-module', () => {
    const net = new Net();
    expect(net.eval()).toBe(net);
    expect([net, net.first, ...net.rest].map((m) => m.training)).toEqual([false, false, false, false]);
    net.train();
    expect([net, net.first, ...net.rest].map((m) => m.training)).toEqual([true, true, true, true]);
  });

  test('zeroGrad drops all gradients', () => {
    const net = new Net();
    net
      .forward(zeros([1, 3]))
      .sum()
      .backward();
    expect(net.parameters().every((p) => p.grad !== null)).toBe(true);
    net.zeroGrad();
    expect(net.parameters().every((p) => p.grad === null)).toBe(true);
  });
});

describe('stateDict', () => {
  test('moves values from one model to another', () => {
    const [a, b] = [new Net(), new Net()];
    const x = tensor([[1, 2, 3]]);
    b.loadStateDict(a.stateDict());
    expect(b.forward(x).toArray()).toEqual(a.forward(x).toArray());
    expect(b.first.weight.requiresGrad).toBe(true);
    a.first.weight.dataSync()[0] = 50;
    expect(b.first.weight.dataSync()[0]).not.toBe(50);
  });

  test('advises to cut the prefix that a wrapper of PyTorch adds', () => {
    const net = new Net();
    const renamed = (prefix: string) =>
      Object.fromEntries(Object.entries(net.stateDict()).map(([name, value]) => [prefix + name, value]));
    expect(() => net.loadStateDict(renamed('module.'))).toThrow(
      "Nothing was changed. The names begin with 'module.', which a wrapper of PyTorch adds: load the values under name.slice(7).",
    );
    expect(() => net.loadStateDict(renamed('_orig_mod.'))).toThrow('name.slice(10)');
    expect(() => net.loadStateDict(renamed('other.'))).toThrow(/Nothing was changed\.$/);
  });

  test('names every problem in one sentence, and changes nothing', () => {
    const net = new Net();
    const before = net.scale.item();
    const { 'first.bias': _, ...dict } = net.stateDict();
    dict.scale = zeros([1]);
    dict['rest.1.weight'] = zeros([2, 3]);
    dict.extra = zeros([1]);
    expect(() => net.loadStateDict(dict)).toThrow(
      'loadStateDict: missing first.bias; unexpected extra; rest.1.weight expected [2, 4], got [2, 3]. Nothing was changed.',
    );
    expect(net.scale.item()).toBe(before);
    expect(codeOf(() => net.loadStateDict(dict, { strict: false }))).toBe('ERR_TENSOR_STATE_DICT');
    dict['rest.1.weight'] = net.first.weight.clone();
    dict['rest.1.weight'].dispose();
    dict['first.weight'] = 3 as never;
    expect(() => net.loadStateDict(dict, { strict: false })).toThrow(
      'first.weight expected a tensor, got 3; rest.1.weight is disposed in the dict. Nothing was changed.',
    );
    expect(net.scale.item()).toBe(before);
    delete dict['first.weight'];
    delete dict['rest.1.weight'];
    net.loadStateDict(dict, { strict: false });
    expect(net.scale.item()).toBe(0);
  });
});

describe('layers', () => {
  test('an entry that loadSnapshot() made no tensor of is told from a tensor', () => {
    const weight = { dtype: 'float32', data: Float32Array.of(1), shape: [1, 1] };
    expect(() => new Linear(1, 1, { bias: false }).loadStateDict({ weight } as never)).toThrow(
      'weight expected a tensor, got an object { data, shape }, of which fromHost(data, shape) makes a tensor.',
    );
  });

  test('Linear starts uniform in ±1/√in, and repeats from a seed', () => {
    manualSeed(5);
    const a = new Linear(100, 200);
    manualSeed(5);
    const b = new Linear(100, 200);
    expect(a.weight.toArray()).toEqual(b.weight.toArray());
    for (const values of [a.weight.dataSync(), a.bias!.dataSync()] as Float32Array[]) {
      const largest = values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
      expect(largest).toBeLessThanOrEqual(Math.fround(0.1));
      expect(largest).toBeGreaterThan(0.09);
    }
    const values = a.weight.dataSync() as Float32Array;
    const variance = values.reduce((s, x) => s + x * x, 0) / values.length;
    expect(variance * 300).toBeCloseTo(1, 1);
    expect(new Linear(2, 3, { bias: false }).bias).toBeNull();
    expect(codeOf(() => new Linear(-1, 3))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('layers may have sizes of 0; without inputs, Linear returns its bias, which starts as 0', () => {
    const layer = new Linear(0, 3);
    expect(layer.bias!.toArray()).toEqual([0, 0, 0]);
    const out = layer.forward(zeros([2, 0]));
    out.sum().backward();
    expect([layer.weight.grad!.shape, layer.bias!.grad!.toArray()]).toEqual([
      [3, 0],
      [2, 2, 2],
    ]);
    expect(new Linear(3, 0).forward(zeros([2, 3])).shape).toEqual([2, 0]);
    expect(new Bilinear(2, 2, 0).forward(zeros([1, 2]), zeros([1, 2])).shape).toEqual([1, 0]);
    expect(new LayerNorm([2, 0]).forward(zeros([2, 2, 0])).shape).toEqual([2, 2, 0]);
    expect(new RMSNorm(0).forward(zeros([2, 0])).shape).toEqual([2, 0]);
    const none = zeros([0], { dtype: 'int64' });
    expect(new Embedding(0, 3).forward(none).shape).toEqual([0, 3]);
    expect(codeOf(() => new LayerNorm([]))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('Sequential runs layers in order and names parameters as PyTorch does', () => {
    const model = new Sequential(new Flatten(), new Linear(6, 3), new ReLU(), new Linear(3, 2));
    expect(Object.keys(model.stateDict())).toEqual(['1.weight', '1.bias', '3.weight', '3.bias']);
    const out = model.forward(zeros([5, 2, 3]));
    expect(out.shape).toEqual([5, 2]);
    expect(model.eval().layers.every((layer) => !layer.training)).toBe(true);
  });

  test('Sequential computes activations along with linear layers, and calls modules that have hooks', () => {
    const layers = [
      new Linear(3, 4),
      new ReLU(),
      new Linear(4, 4),
      new GELU({ approximate: 'tanh' }),
    ] as const;
    const model = new Sequential(...layers);
    const x = tensor([[0.5, -1, 2]]);
    const want = layers.reduce<Tensor>((h, layer) => layer.forward(h), x).toArray();
    expect(model.forward(x).toArray()).toEqual(want);
    const seen: string[] = [];
    for (const layer of layers)
      layer.registerForwardHook((module) => void seen.push(module.constructor.name));
    expect(model.forward(x).toArray()).toEqual(want);
    expect(seen).toEqual(['Linear', 'ReLU', 'Linear', 'GELU']);
  });
});

describe('gradParams', () => {
  const paramsOf = (module: Module): GradParam[] =>
    (module as unknown as Record<symbol, () => GradParam[]>)[Symbol.for('ringwise.gradParams')]!();

  test('offers what a data-parallel wrapper needs: memory, readiness and binding', () => {
    const model = new Sequential(new Linear(2, 3), new ReLU(), new Linear(3, 1));
    model.parameters()[3]!.requiresGrad = false;
    const params = paramsOf(model);
    expect(params.map(({ name, value }) => `${name} ${value.dtype} ${value.count}`)).toEqual([
      '0.weight float32 6',
      '0.bias float32 3',
      '2.weight float32 3',
    ]);
    expect(params.map(({ grad }) => grad)).toEqual([null, null, null]);

    const bucket = new Float32Array(12);
    const offsets = [6, 3, 0];
    const events: string[] = [];
    const stops = params.flatMap((param, i) => {
      param.bindGrad({ host: bucket.subarray(offsets[i]!, offsets[i]! + param.value.count) });
      return [param.onGradReady(() => events.push(param.name))];
    });
    stops.push(params[0]!.onBackwardEnd(() => events.push('end')));
    const step = (): void =>
      scope(() =>
        model
          .forward(tensor([[1, -2]]))
          .sum()
          .backward(),
      );
    step();
    expect(events).toEqual(['2.weight', '0.bias', '0.weight', 'end']);
    for (const [i, param] of params.entries()) {
      expect(param.grad!.host).toEqual(bucket.subarray(offsets[i]!, offsets[i]! + param.value.count));
    }
    // The model reads the values that a reducer writes.
    bucket.fill(0.5);
    expect(model.parameters()[0]!.grad!.toArray()).toEqual([
      [0.5, 0.5],
      [0.5, 0.5],
      [0.5, 0.5],
    ]);
    for (const stop of stops) stop();
    step();
    expect(events).toHaveLength(4);
  });

  test('a parameter has clones for another optimiser, which no scope disposes', () => {
    const model = new Linear(2, 3);
    const [weight] = paramsOf(model);
    model.weight.sum().backward();
    const clone = scope(() => weight!.clone());
    expect([clone.name, clone.shape, clone.grad]).toEqual(['weight', [3, 2], null]);
    expect(clone.value.host).toEqual(weight!.value.host);
    const copy = clone.key as Tensor;
    expect([copy.requiresGrad, copy.isLeaf]).toEqual([true, true]);
    (clone.value.host as Float32Array).fill(7);
    expect(copy.toArray()).toEqual(Array(3).fill([7, 7]));
    expect(model.weight.toArray()).not.toEqual(copy.toArray());

    const half = new Linear(2, 3).to('bfloat16');
    expect((paramsOf(half)[0]!.clone().key as Tensor).dtype).toBe('bfloat16');
  });

  test('every backward has an object of its own, which its gradients and its end are told with', () => {
    const model = new Sequential(new Linear(2, 2), new Linear(2, 1));
    const params = paramsOf(model);
    const runs: object[] = [];
    const stops = params.map((param) => param.onGradReady((run) => runs.push(run)));
    stops.push(params[0]!.onBackwardEnd((run) => runs.push(run)));
    const loss = () => model.forward(tensor([[1, 2]])).sum();
    const outer = loss().mul(1);
    const inner = model.layers[0]!.forward(tensor([[1, 2]])).sum();
    outer.registerHook(() => void inner.backward());
    outer.backward(); // 4 gradients, of which 2 also get a part from the inner backward, and one end
    loss().backward();
    model.parameters()[0]!.sum().backward();
    for (const stop of stops) stop();
    expect(runs.map((run) => [...new Set(runs)].indexOf(run))).toEqual(
      [5, 5, 2].flatMap((count, run) => Array<number>(count).fill(run)),
    );
  });

  test('what is frozen is offered apart, with a listener for when it trains after all', () => {
    const model = new Sequential(new Linear(2, 2), new Linear(2, 1));
    model.layers[0]!.requiresGrad_(false);
    const frozen = (model as unknown as Record<symbol, () => FrozenParam[]>)[
      Symbol.for('ringwise.frozenParams')
    ]!();
    expect(frozen.map(({ name, shape }) => [name, shape])).toEqual([
      ['0.weight', [2, 2]],
      ['0.bias', [2]],
    ]);
    expect(paramsOf(model).map(({ name }) => name)).toEqual(['1.weight', '1.bias']);
    (frozen[0]!.value.host as Float32Array).fill(3);
    expect(model.parameters()[0]!.toArray()).toEqual([
      [3, 3],
      [3, 3],
    ]);
    expect(frozen[0]!.key).toBe(model.parameters()[0]);
    const events: string[] = [];
    const stops = frozen.map(({ name, onGradReady }) => onGradReady(() => events.push(name)));
    const step = () =>
      model
        .forward(tensor([[1, 2]]))
        .sum()
        .backward();
    step();
    expect(events).toEqual([]);
    model.requiresGrad_();
    step();
    stops[0]!();
    step();
    expect(events).toEqual(['0.bias', '0.weight', '0.bias']);
  });

  test('writing the value changes the model, and a bound loop uses constant memory', () => {
    const model = new Sequential(new Linear(2, 2));
    for (const param of paramsOf(model)) {
      (param.value.host as Float32Array).fill(1);
      param.bindGrad({ host: new Float32Array(param.value.count) });
    }
    expect(model.forward(tensor([[1, 2]])).toArray()).toEqual([[4, 4]]);
    const step = (): void => {
      scope(() =>
        model
          .forward(zeros([3, 2]))
          .sum()
          .backward(),
      );
      model.zeroGrad();
    };
    step();
    const before = memory();
    for (let i = 0; i < 100; i++) step();
    expect(memory()).toEqual(before);
  });
});
