// Tests captured steps: a replayed training must equal the eager one bit for bit.
import { describe, expect, test } from 'vitest';
import { bufferSymbol, type StepCapture } from '../../../src/core/protocol.ts';
import {
  arange,
  type CompiledStep,
  compile,
  crossEntropy,
  dropout,
  generator,
  manualSeed,
  memory,
  mseLoss,
  ones,
  randn,
  scope,
  synchronize,
  type Tensor,
  tensor,
} from '../../../src/index.ts';
import { Linear, Module, ReLU } from '../../../src/nn/index.ts';
import { Adam, clipGradNorm, Lion, type Optimizer, SGD } from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { cudaDevice } from '../../support/cuda-device.ts';

const device = 'cuda';

class Net extends Module {
  readonly first = new Linear(8, 16);
  readonly relu = new ReLU();
  readonly second = new Linear(16, 4);
  readonly p: number;

  constructor(p: number) {
    super();
    this.p = p;
  }

  forward(x: Tensor): Tensor {
    const hidden = this.relu.forward(this.first.forward(x));
    return this.second.forward(this.p > 0 ? dropout(hidden, this.p) : hidden);
  }
}

interface Training {
  readonly net: Net;
  readonly optimizer: Optimizer;
  readonly step: (x: Tensor, y: Tensor) => Tensor;
}

function training(where: 'cpu' | 'cuda', p: number, make: (params: Tensor[]) => Optimizer): Training {
  manualSeed(5);
  const net = new Net(p).to(where);
  const optimizer = make(net.parameters());
  const step = (x: Tensor, y: Tensor): Tensor => {
    optimizer.zeroGrad();
    const loss = mseLoss(net.forward(x), y);
    loss.backward();
    clipGradNorm(net.parameters(), 1);
    optimizer.step();
    return loss;
  };
  return { net, optimizer, step };
}

const batches = (where: 'cpu' | 'cuda', count: number): [Tensor, Tensor][] => {
  const random = generator(17);
  return Array.from({ length: count }, () => [
    randn([6, 8], { generator: random }).to(where),
    randn([6, 4], { generator: random }).to(where),
  ]);
};

const makers: Record<string, (params: Tensor[]) => Optimizer> = {
  Adam: (params) => new Adam(params, { lr: 0.01 }),
  'SGD with momentum': (params) => new SGD(params, { lr: 0.05, momentum: 0.9, weightDecay: 0.01 }),
  Lion: (params) => new Lion(params, { lr: 0.003 }),
};

/**
 * Trains one step per batch. Halves the learning rate after the eighth step and, if `p` > 0, draws outside of the step
 * after the tenth. Returns losses, parameters and the optimiser's state.
 */
function run(
  p: number,
  make: (params: Tensor[]) => Optimizer,
  isCompiled: boolean,
  at = batches(device, 12),
) {
  const { net, optimizer, step } = training(device, p, make);
  const run = isCompiled ? compile(step) : step;
  const losses: number[] = [];
  for (const [i, [x, y]] of at.entries()) {
    scope(() => losses.push(run(x, y).item()));
    if (i === 7) optimizer.lr *= 0.5;
    if (p > 0 && i === 9) dropout(ones([5], { device }), 0.5);
  }
  return { losses, params: net.parameters().map((each) => each.toArray()), state: optimizer.stateDict() };
}

describe.skipIf(cudaDevice === null)(`compile on ${cudaDevice?.name}`, () => {
  test.each(Object.entries(makers))('replayed training is the eager one bit for bit, with %s', (_, make) => {
    const [eager, replayed] = [run(0, make, false), run(0, make, true)];
    expect(replayed.losses).toEqual(eager.losses);
    expect(replayed.params).toEqual(eager.params);
    expect(replayed.state.steps).toEqual(eager.state.steps);
    expect(new Set(eager.losses).size).toBe(12);
  });

  test('replayed training is the eager one with dropout, and with draws between steps', () => {
    const [eager, replayed] = [run(0.5, makers.Adam!, false), run(0.5, makers.Adam!, true)];
    expect(replayed.losses).toEqual(eager.losses);
    expect(replayed.params).toEqual(eager.params);
  });

  test('replayed training is the eager one with ignored labels, class weights, label smoothing and dropout', () => {
    const options = { labelSmoothing: 0.1, weight: tensor([1, 2, 0.5, 1], { device }) };
    const losses = [false, true].map((isCompiled) => {
      manualSeed(5);
      const net = new Net(0.5).to(device);
      const optimizer = new Adam(net.parameters(), { lr: 0.01 });
      const train = (x: Tensor, labels: Tensor): Tensor => {
        optimizer.zeroGrad();
        const logits = net.forward(x);
        const loss = crossEntropy(logits, labels).add(crossEntropy(logits, labels, options));
        loss.backward();
        optimizer.step();
        return loss;
      };
      const step = isCompiled ? compile(train) : train;
      return batches(device, 8).map(([x], i) =>
        step(x, tensor([0, 1, -100, 3, i % 4, 2], { dtype: 'int64', device })).item(),
      );
    });
    expect(losses[1]).toEqual(losses[0]);
    expect(new Set(losses[0]).size).toBe(8);
  });

  test('inputs are copied into fixed tensors, from host memory too; each run returns the same result tensors', () => {
    const step = compile((x: Tensor, y: Tensor) => ({ sum: x.add(y), parts: [x.mul(2)] }), { device });
    const results = [1, 2, 3, 4].map((i) => {
      const { sum, parts } = step(tensor([i, i]), tensor([10, 20], { device }));
      return [step.isCaptured, sum, sum.toArray(), parts[0]!.toArray()];
    });
    expect(results.map((each) => each.slice(2))).toEqual(
      [1, 2, 3, 4].map((i) => [
        [10 + i, 20 + i],
        [2 * i, 2 * i],
      ]),
    );
    expect(results.map(([isCaptured]) => isCaptured)).toEqual([false, false, true, true]);
    expect(results[3]![1]).toBe(results[2]![1]);
    // Writing to the inputs of the step itself saves the copy.
    step.inputs[0]!.fill_(7);
    const { sum } = step(step.inputs[0]!, step.inputs[1]!);
    expect(sum.toArray()).toEqual([17, 27]);
    step.dispose();
    expect(() => step(tensor([1, 1]), tensor([1, 1]))).toThrow(/disposed/);
  });

  test('runs follow each other without waits, and use memory of their own', () => {
    const total = ones([1], { device });
    const step = compile((x: Tensor) => {
      const y = x.mul(2).add(1);
      total.add_(y.sum());
    });
    const x = ones([32], { device });
    for (let i = 0; i < 4; i++) step(x);
    const before = memory(device);
    const others: Tensor[] = [];
    for (let i = 0; i < 20; i++) {
      step(x);
      others.push(ones([32], { device }));
    }
    synchronize(device);
    expect(total.item()).toBe(1 + 24 * 96);
    for (const other of others) {
      expect(other.toArray()).toEqual(Array(32).fill(1));
      other.dispose();
    }
    for (let i = 0; i < 20; i++) step(x);
    expect(memory(device).tensors).toBe(before.tensors);
    expect(memory(device).bytes).toBe(before.bytes);
  });

  test.each([
    ['unfrozen', (second: Linear) => second.requiresGrad_(true)],
    ['converted', (second: Linear) => second.to('float64')],
  ])('a state of a parameter that was %s after the warm-up cannot be made in the capture', (name, change) => {
    const [first, second] = [new Linear(2, 2).to(device), new Linear(2, 2).to(device)];
    second.requiresGrad_(name !== 'unfrozen');
    const parameters = [...first.parameters(), ...second.parameters()];
    const optimizer = new Adam(parameters);
    const train = (): void => {
      optimizer.zeroGrad();
      for (const param of parameters) if (param.requiresGrad) param.square().sum().backward();
      optimizer.step();
    };
    const step = compile(train, { device });
    step();
    step();
    change(second);
    const before = second.weight.toArray();
    expect(() => step()).toThrow("the optimiser has no state 'expAvg' of the dtype");
    expect(codeOf(() => step())).toBe('ERR_TENSOR_CAPTURE');
    expect(second.weight.toArray()).toEqual(before);
    train();
    step();
    expect(step.isCaptured).toBe(true);
  });

  test('a captured step starts again with the zero state that loadStateDict gives', () => {
    const at = batches(device, 6);
    const [eager, replayed] = [false, true].map((isCompiled) => {
      const { net, optimizer, step } = training(device, 0, makers.Adam!);
      const fresh = structuredClone(optimizer.stateDict());
      const run = isCompiled ? compile(step) : step;
      for (const [i, [x, y]] of at.entries()) {
        if (i === 4) optimizer.loadStateDict(fresh);
        run(x, y);
      }
      return [net.parameters().map((param) => param.toArray()), optimizer.stateDict().steps];
    });
    expect(replayed).toEqual(eager);
  });

  test('memory that the step reads is kept for it when its tensor is disposed', () => {
    const scale = tensor([3, 4], { device });
    const step = compile((x: Tensor) => x.mul(scale));
    const x = ones([2], { device });
    for (let i = 0; i < 3; i++) step(x);
    scale.dispose();
    const others = Array.from({ length: 4 }, () => tensor([9, 9], { device }));
    expect(step(x).toArray()).toEqual([3, 4]);
    for (const other of others) other.dispose();
  });

  test('work that cannot be captured throws an error that names it, at every call; tensors stay usable', () => {
    const x = ones([2], { device });
    const host = ones([2]);
    const steps: Record<string, [() => unknown, RegExp]> = {
      'item()': [
        () => x.sum().item(),
        /compile: item\(\) cannot be part of a step that is captured on cuda:0/,
      ],
      'dataSync()': [() => x.dataSync(), /compile: dataSync\(\) cannot be part/],
      'toArray()': [() => x.toArray(), /compile: toArray\(\) cannot be part/],
      synchronize: [() => synchronize(device), /compile: synchronize cannot be part/],
      'a copy': [() => x.copy_(tensor([1, 2])), /compile: an operation on cpu cannot be part/],
      "to('cuda')": [() => host.to(device), /compile: a copy from host memory cannot be part/],
      'uniform()': [() => generator(1).uniform(new Float32Array(2)), /uniform\(\) of a generator cannot be/],
      'normal()': [() => generator(1).normal(new Float32Array(2)), /normal\(\) of a generator cannot be/],
      'the CPU': [() => host.add(1), /compile: an operation on cpu cannot be part of a step/],
    };
    for (const [name, [fn, message]] of Object.entries(steps)) {
      const step: CompiledStep<[Tensor], unknown> = compile((given: Tensor) => {
        const y = given.add(1);
        fn();
        return y;
      });
      step(x);
      step(x);
      expect(() => step(x), name).toThrow(message);
      expect(codeOf(() => step(x))).toBe('ERR_TENSOR_CAPTURE');
      expect(step.isCaptured).toBe(false);
      expect(x.add(1).toArray()).toBeInstanceOf(Array);
    }
  });

  test('other packages take part: they are told of the capture and of each run, and may refuse or end runs', () => {
    type Slot = { readonly now: StepCapture | null };
    const slot = (globalThis as unknown as Record<symbol, Slot>)[Symbol.for('ringwise.capture')]!;
    const heard: string[] = [];
    let participant: StepCapture | null = null;
    let isRefusing = false;
    let isFaulty = true;
    const optimized = ones([2], { device });
    optimized.requiresGrad = true;
    const optimizer = new SGD([optimized], { lr: 0.5 });
    const step = compile((x: Tensor) => {
      optimizer.zeroGrad();
      const y = x.mul(optimized).sum();
      y.backward();
      optimizer.step();
      participant = slot.now;
      participant?.onEnd((isAbandoned) => heard.push(isAbandoned ? 'given up' : 'end'));
      participant?.onRun((stream) => {
        if (isRefusing) throw new Error('not now');
        heard.push(stream === x[bufferSymbol]().handle!.stream ? 'before' : 'elsewhere');
        return () => void heard.push('after');
      });
      if (participant !== null && isFaulty) throw new Error('a mistake');
      // The captured work goes to the stream that participants are told.
      if (participant !== null) heard.push(String(x[bufferSymbol]().handle!.stream === participant.stream));
      return y;
    });
    const x = ones([2], { device });
    step(x);
    step(x);
    expect([participant, heard]).toEqual([null, []]);
    expect(() => step(x)).toThrow('a mistake');
    expect(heard.splice(0)).toEqual(['given up']);
    isFaulty = false;
    step(x);
    step(x);
    expect(heard.splice(0)).toEqual(['true', 'end', 'before', 'after', 'before', 'after']);
    expect(slot.now).toBeNull();
    isRefusing = true;
    const before = optimized.toArray();
    expect(() => step(x)).toThrow('not now');
    expect(optimized.toArray()).toEqual(before);
    isRefusing = false;
    participant!.drop();
    participant!.drop();
    expect(() => step(x)).toThrow('what was captured has been dropped');
    step.dispose();
    participant!.drop();
  });

  test('each participant is told once how the capture ends, also when one of them throws', () => {
    type Slot = { readonly now: StepCapture | null };
    const slot = (globalThis as unknown as Record<symbol, Slot>)[Symbol.for('ringwise.capture')]!;
    const heard: string[] = [];
    let isFaulty = true;
    const step = compile(
      (x: Tensor) => {
        for (const name of ['first', 'second', 'third']) {
          slot.now?.onEnd((isGivenUp) => {
            heard.push(`${name} ${isGivenUp ? 'given up' : 'end'}`);
            if (name === 'second' && isFaulty) throw new Error('cannot join');
          });
        }
        return x.add(1);
      },
      { warmUps: 1 },
    );
    const x = ones([2], { device });
    step(x);
    expect(() => step(x)).toThrow('cannot join');
    expect(heard.splice(0)).toEqual(['first end', 'second end', 'third given up']);
    isFaulty = false;
    expect(step(x).toArray()).toEqual([2, 2]);
    expect(heard).toEqual(['first end', 'second end', 'third end']);
  });

  test('arange gives the numbers of the CPU, and is part of a captured step', () => {
    const dtypes = ['float32', 'float64', 'float16', 'bfloat16', 'int64', 'int32', 'uint8'] as const;
    for (const dtype of dtypes)
      for (const [start, end, by] of [
        [0, 5, 1],
        [3, 100, 7],
        [0.3, 2, 0.1],
        [90, 2, -1.5],
        [4, 4, 1],
      ] as const)
        expect(arange(start, end, by, { dtype, device }).toArray()).toEqual(
          arange(start, end, by, { dtype }).toArray(),
        );
    expect(arange(1000, undefined, 1, { device, requiresGrad: true }).requiresGrad).toBe(true);
    const step = compile((x: Tensor) => x.add(arange(x.shape[0]!, undefined, 1, { device })));
    for (let i = 0; i < 4; i++)
      expect(step(ones([3], { device }).mul(i)).toArray()).toEqual([i, i + 1, i + 2]);
    expect(step.isCaptured).toBe(true);
  });

  test('other shapes and dtypes than those of the first call are refused', () => {
    const step = compile((x: Tensor) => x.add(1));
    step(ones([2, 3], { device }));
    expect(() => step(ones([3, 3], { device }))).toThrow(
      'compile: input 0 is float32 [3, 3], but the step was captured with float32 [2, 3].',
    );
    expect(codeOf(() => step(ones([2, 3], { device, dtype: 'float64' })))).toBe('ERR_TENSOR_CAPTURE');
    expect(codeOf(() => (step as unknown as () => void)())).toBe('ERR_TENSOR_CAPTURE');
    const later = compile(async (x: Tensor) => x);
    expect(() => later(ones([1], { device }))).toThrow(
      /expected a function that returns when all is started/,
    );
  });
});

test('on the CPU compile runs the step as it is', () => {
  const losses = [false, true].map((isCompiled) => {
    const { step, optimizer } = training('cpu', 0.5, makers.Adam!);
    const run = isCompiled ? compile(step) : step;
    const got = batches('cpu', 5).map(([x, y]) => run(x, y).item());
    return [got, optimizer.stateDict().steps];
  });
  expect(losses[1]).toEqual(losses[0]);
});
