// Tests optimisers, their groups and their state.
import { describe, expect, test } from 'vitest';
import {
  crossEntropy,
  keep,
  linear,
  memory,
  noGrad,
  relu,
  scope,
  type Tensor,
  tensor,
} from '../../../src/index.ts';
import { Linear, parameter } from '../../../src/nn/index.ts';
import {
  Adadelta,
  Adafactor,
  Adagrad,
  Adam,
  Adamax,
  AdamW,
  ASGD,
  LBFGS,
  Lion,
  NAdam,
  Optimizer,
  type OptimizerState,
  RAdam,
  RMSprop,
  Rprop,
  SGD,
  type SGDOptions,
} from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';

const leaf = (...values: number[]): Tensor => parameter(tensor(values));

/** Makes one step on f(p) = Σ p² / 2, whose gradient is p. */
function stepOn(optimizer: Optimizer): void {
  scope(() => {
    optimizer.zeroGrad();
    for (const param of optimizer.params) param.square().mul(0.5).sum().backward();
    optimizer.step();
  });
}

const expectClose = (got: number[], want: number[]): void => {
  for (const [i, value] of want.entries()) expect(got[i]).toBeCloseTo(value, 5);
};

test.each([
  ['SGD', (params: Tensor[]) => new SGD(params, { lr: 0.1, momentum: 0.9 })],
  ['Adam', (params: Tensor[]) => new Adam(params)],
])('%s steps with a parameter without elements whose gradient has no memory', (_, make) => {
  const [empty, other] = [leaf(), leaf(1)];
  empty.bindGrad(new Float32Array(0));
  const optimizer = make([empty, other]);
  stepOn(optimizer);
  stepOn(optimizer);
  expect(other.item()).toBeLessThan(1);
  expect(optimizer.stateDict().steps).toEqual([2, 2]);
});

describe('SGD', () => {
  test('trains a small network with the losses that PyTorch 2.13 gives', () => {
    const series = (count: number, f: (i: number) => number): Float32Array =>
      new Float32Array(count).map((_, i) => f(i));
    const make = (data: Float32Array, ...shape: number[]): Tensor => parameter(tensor(data, { shape }));
    const w1 = make(series(20, Math.sin), 5, 4);
    const b1 = make(series(5, Math.cos), 5);
    const w2 = make(
      series(15, (i) => Math.cos(i) * 0.5),
      3,
      5,
    );
    const b2 = make(new Float32Array(3), 3);
    const x = tensor(
      series(16, (i) => Math.sin(i) * 2),
      { shape: [4, 4] },
    );
    const y = tensor([0n, 2n, 1n, 1n]);
    const optimizer = new SGD([w1, b1, w2, b2], {
      lr: 0.2,
      momentum: 0.9,
      weightDecay: 0.01,
      nesterov: true,
    });
    const losses = Array.from({ length: 5 }, () => {
      const loss = crossEntropy(linear(relu(linear(x, w1, b1)), w2, b2), y);
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      return loss.item();
    });
    expectClose(losses, [0.914771, 0.367871, 0.259775, 0.205876, 0.159021]);
    expectClose(b1.toArray() as number[], [1.125028, 0.52248, -0.381614, -1.02898, -0.514101]);
  });

  test('momentum that is switched on later starts with the gradient', () => {
    const p = leaf(1);
    const optimizer = new SGD([p], { lr: 0.5, dampening: 0.5 });
    stepOn(optimizer);
    optimizer.groups[0]!.momentum = 0.5;
    stepOn(optimizer);
    expect(p.item()).toBe(0.25);
    stepOn(optimizer);
    expect(p.item()).toBe(0.25 - 0.5 * (0.5 * 0.5 + 0.5 * 0.25));
  });

  test('refuses settings that make no sense', () => {
    const p = leaf(1);
    for (const options of [
      { lr: -1 },
      { lr: NaN },
      { lr: 1, momentum: -0.1 },
      { lr: 1, nesterov: true },
      { lr: 1, nesterov: true, momentum: 0.9, dampening: 0.1 },
    ] satisfies SGDOptions[]) {
      expect(codeOf(() => new SGD([p], options))).toBe('ERR_TENSOR_ARGUMENT');
    }
    expect(() => new SGD([], { lr: 1 })).toThrow('expected at least one parameter, got none');
    expect(() => new SGD([p, p], { lr: 1 })).toThrow('expected each parameter once');
    expect(() => new SGD([p.mul(2)], { lr: 1 })).toThrow('got the result of an operation');
  });
});

describe('defaults', () => {
  test('are those of PyTorch', () => {
    const p = leaf(1);
    expect(new Adam([p]).groups[0]).toEqual({
      ...{ params: [p], lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8 },
      ...{ weightDecay: 0, amsgrad: false, maximize: false, decoupledWeightDecay: false },
    });
    expect(new AdamW([p]).groups[0]).toMatchObject({ lr: 1e-3, weightDecay: 0.01 });
    expect(new RMSprop([p]).groups[0]).toMatchObject({ lr: 0.01, alpha: 0.99, eps: 1e-8, momentum: 0 });
    expect(new Lion([p]).groups[0]).toMatchObject({ lr: 1e-4, betas: [0.9, 0.99], weightDecay: 0 });
  });

  test('options out of range are refused', () => {
    const p = leaf(1);
    for (const make of [
      () => new Adam([p], { betas: [1, 0.9] }),
      () => new Adam([p], { betas: [0.9] as never }),
      () => new AdamW([p], { eps: -1 }),
      () => new RMSprop([p], { alpha: 1.5 }),
      () => new RMSprop([p], { momentum: -1 }),
      () => new Lion([p], { weightDecay: -1 }),
      () => new Adagrad([p], { lrDecay: -1 }),
      () => new Adadelta([p], { rho: 1.1 }),
      () => new Adamax([p], { betas: [0.9, 1] }),
      () => new NAdam([p], { momentumDecay: -1 }),
      () => new RAdam([p], { decoupledWeightDecay: 1 as never }),
      () => new ASGD([p], { t0: NaN }),
      () => new Rprop([p], { etas: [1.1, 1.2] }),
      () => new Adafactor([p], { beta2Decay: 0.1 }),
      () => new Adafactor([p], { eps: [null, -1] }),
      () => new Adafactor([p], { d: 0.5 }),
    ]) {
      expect(codeOf(make)).toBe('ERR_TENSOR_ARGUMENT');
    }
  });
});

describe('every optimiser', () => {
  const makers: [string, (params: Tensor[]) => Optimizer][] = [
    ['SGD', (params) => new SGD(params, { lr: 0.05, momentum: 0.9 })],
    ['Adam', (params) => new Adam(params, { lr: 0.05, amsgrad: true })],
    ['AdamW', (params) => new AdamW(params, { lr: 0.05, weightDecay: 0.1 })],
    ['RMSprop', (params) => new RMSprop(params, { momentum: 0.5, centered: true })],
    ['Lion', (params) => new Lion(params, { lr: 0.05, weightDecay: 0.1 })],
    ['Adagrad', (params) => new Adagrad(params, { lr: 0.5, initialAccumulatorValue: 0.1 })],
    ['Adadelta', (params) => new Adadelta(params, { lr: 1, eps: 1e-4 })],
    ['Adamax', (params) => new Adamax(params, { lr: 0.05 })],
    ['NAdam', (params) => new NAdam(params, { lr: 0.05 })],
    ['RAdam', (params) => new RAdam(params, { lr: 0.05 })],
    ['ASGD', (params) => new ASGD(params, { lr: 0.05, t0: 2, lambd: 0.01 })],
    ['Rprop', (params) => new Rprop(params)],
    ['Adafactor', (params) => new Adafactor(params, { lr: 0.05 })],
  ];

  test.each(makers)('%s: finds a minimum', (_, make) => {
    const p = leaf(1, -2);
    const optimizer = make([p]);
    for (let i = 0; i < 300; i++) stepOn(optimizer);
    for (const value of p.toArray() as number[]) expect(Math.abs(value)).toBeLessThan(0.1);
  });

  test.each(makers)('%s: resumes from its state to the last bit, by way of JSON', (_, make) => {
    const params = [leaf(1, -2), leaf(3)];
    const optimizer = make(params);
    for (let i = 0; i < 3; i++) stepOn(optimizer);
    const copies = params.map((param) => parameter(param.detach().clone()));
    const resumed = make(copies);
    resumed.lr = 9;
    const { groups, steps, tensors } = optimizer.stateDict();
    resumed.loadStateDict({ ...JSON.parse(JSON.stringify({ groups, steps })), tensors } as OptimizerState);
    expect(resumed.lr).toBe(optimizer.lr);
    for (let i = 0; i < 3; i++) for (const each of [optimizer, resumed]) stepOn(each);
    expect(copies.map((copy) => copy.toArray())).toEqual(params.map((param) => param.toArray()));
  });

  test.each(makers)('%s: skips parameters without a gradient, and allocates once', (_, make) => {
    const [p, q] = [leaf(1), leaf(1)];
    const optimizer = make([p, q]);
    p.mul(2).backward();
    optimizer.step();
    expect(p.item()).not.toBe(1);
    expect(q.item()).toBe(1);
    q.requiresGrad = false;
    for (let i = 0; i < 6; i++) stepOnFirst(optimizer, p);
    const before = memory();
    for (let i = 0; i < 5; i++) stepOnFirst(optimizer, p);
    expect(memory()).toEqual(before);
  });

  /** Makes a step in which only `p` has a gradient. */
  function stepOnFirst(optimizer: Optimizer, p: Tensor): void {
    optimizer.zeroGrad();
    scope(() => p.mul(2).backward());
    optimizer.step();
  }

  test.each(makers)('%s: follows parameters of float64, refuses 16 bits', (_, make) => {
    const p = leaf(1);
    const optimizer = make([p]);
    stepOn(optimizer);
    p.convert('float64');
    stepOn(optimizer);
    expect(Object.values(optimizer.stateDict().tensors).map((tensor) => tensor.dtype)).toContain('float64');
    p.convert('float16');
    expect(() => stepOn(optimizer)).toThrow('keep float32 parameters and use autocast');
  });
});

describe('groups', () => {
  test('have options of their own, which may change between steps', () => {
    const [p, q, r] = [leaf(1), leaf(1), leaf(1)];
    const optimizer = new SGD([{ params: [p] }, { params: [q], lr: 0.5 }], { lr: 0.25 });
    stepOn(optimizer);
    expect([p.item(), q.item(), optimizer.lr]).toEqual([0.75, 0.5, 0.25]);
    optimizer.groups[0]!.lr = 0;
    optimizer.addParamGroup({ params: [r], lr: 1 });
    stepOn(optimizer);
    expect([p.item(), q.item(), r.item()]).toEqual([0.75, 0.25, 0]);
    optimizer.lr = 0.125;
    expect(optimizer.groups.map((group) => group.lr)).toEqual([0.125, 0.125, 0.125]);
    expect(optimizer.params).toEqual([p, q, r]);
    expect(() => optimizer.addParamGroup({ params: [q] })).toThrow('expected each parameter once');
    expect(() => {
      optimizer.lr = -1;
    }).toThrow('expected a number ≥ 0');
  });

  test('are not searched for each other group', () => {
    let reads = 0;
    class Counting extends SGD {
      override get params(): Tensor[] {
        reads++;
        return super.params;
      }
    }
    const readsOf = (count: number): number => {
      reads = 0;
      const optimizer = new Counting(
        Array.from({ length: count }, () => ({ params: [leaf(1)] })),
        { lr: 0.1 },
      );
      expect(optimizer.stateDict().groups.map(({ params }) => params[0])).toEqual([...Array(count).keys()]);
      return reads;
    };
    expect(readsOf(100)).toBe(readsOf(2));
    const one = { params: [leaf(1)] };
    expect(() => new SGD([one, one], { lr: 0.1 })).toThrow('expected each parameter once');
  });

  test('saved groups name parameters by position, and tensors by what they are and the position', () => {
    const optimizer = new AdamW([{ params: [leaf(1)], lr: 0.5 }, { params: [leaf(1), leaf(2)] }]);
    stepOn(optimizer);
    const { groups, steps, tensors } = optimizer.stateDict();
    expect(groups.map((group) => [group.params, group.lr])).toEqual([
      [[0], 0.5],
      [[1, 2], 1e-3],
    ]);
    expect(steps).toEqual([1, 1, 1]);
    expect(Object.keys(tensors)).toEqual([0, 1, 2].flatMap((i) => [`expAvg.${i}`, `expAvgSq.${i}`]));
  });
});

test('a group that is none, and a hook or function of a module that is none, are refused at once', () => {
  for (const wrong of [undefined, null, 5, {}, leaf(1)])
    expect(codeOf(() => new SGD([leaf(1)], { lr: 1 }).addParamGroup(wrong as never))).toBe(
      'ERR_TENSOR_ARGUMENT',
    );
  const net = new Linear(1, 1);
  for (const call of ['apply', 'registerForwardHook', 'registerForwardPreHook'] as const)
    expect(codeOf(() => net[call](5 as never))).toBe('ERR_TENSOR_ARGUMENT');
  expect(codeOf(() => net.to(Object.create(null) as never))).toBe('ERR_TENSOR_DEVICE');
});

describe('names of parameters', () => {
  test('go into the groups and the saved state, and come back from it', () => {
    const net = new Linear(2, 1);
    const optimizer = new SGD(net.namedParameters(), { lr: 0.1 });
    expect(optimizer.params).toEqual(net.parameters());
    optimizer.addParamGroup({ params: [['scale', leaf(1)]], lr: 1 });
    expect(optimizer.groups.map((group) => group.paramNames)).toEqual([['weight', 'bias'], ['scale']]);
    const saved = optimizer.stateDict();
    expect(saved.groups.map((group) => group.paramNames)).toEqual([['weight', 'bias'], ['scale']]);
    const unnamed = new SGD([{ params: [leaf(1), leaf(2)] }, { params: [leaf(3)] }], { lr: 1 });
    unnamed.loadStateDict(saved);
    expect(unnamed.groups[1]).toMatchObject({ lr: 1, paramNames: ['scale'] });
  });

  test('are there for all groups or for none', () => {
    const named = new SGD([['p', leaf(1)]], { lr: 0.1 });
    expect(() => named.addParamGroup({ params: [leaf(1)] })).toThrow(
      'expected all groups with names, or all without, got a group without names',
    );
    const unnamed = new SGD([leaf(1)], { lr: 0.1 });
    expect(() => unnamed.addParamGroup({ params: [['p', leaf(1)]] })).toThrow('got a group with names');
    expect(() => new SGD([['p', leaf(1)], leaf(1)] as never, { lr: 0.1 })).toThrow('pairs [name, tensor]');
  });
});

describe('loadStateDict', () => {
  test('weight decay of Adam is as in the state; that of AdamW stays decoupled, as in PyTorch', () => {
    const [adam, adamw] = [new Adam([leaf(1)]), new AdamW([leaf(1)])];
    const [ofAdam, ofAdamW] = [adam.stateDict(), adamw.stateDict()];
    adam.loadStateDict(ofAdamW);
    adamw.loadStateDict(ofAdam);
    expect(adam.groups[0]).toMatchObject({ decoupledWeightDecay: true, weightDecay: 0.01 });
    expect(adamw.groups[0]).toMatchObject({ decoupledWeightDecay: true, weightDecay: 0 });
    expect(codeOf(() => new AdamW([leaf(1)], { decoupledWeightDecay: false } as never))).toBe(
      'ERR_TENSOR_ARGUMENT',
    );
  });

  test('takes tensors as plain data, and copies them', () => {
    const make = () => new NAdam([leaf(1, 2), leaf(3)], { lr: 0.1 });
    const [first, second] = [make(), make()];
    stepOn(first);
    for (const [i, param] of first.params.entries()) second.params[i]!.detach().copy_(param.detach());
    const { tensors, ...rest } = first.stateDict();
    const plain = Object.entries(tensors).map(([name, { dtype, shape, dataSync }], i) => {
      const data = dataSync.call(Object.values(tensors)[i]!).slice();
      return [name, { dtype, shape, data }] as const;
    });
    const before = memory().tensors;
    second.loadStateDict({ ...rest, tensors: Object.fromEntries(plain) });
    expect(memory().tensors - before).toBe(Object.keys(tensors).length); // the optimiser's own
    for (const [, { data }] of plain) data.fill(9 as never);
    stepOn(first);
    stepOn(second);
    expect(second.params.map((param) => param.toArray())).toEqual(
      first.params.map((param) => param.toArray()),
    );
  });

  test('names every problem, and changes nothing', () => {
    const optimizer = new Adam([leaf(1, -2), leaf(1)], { lr: 0.1 });
    const other = new Adam([leaf(1, -2), leaf(1, 2)], { lr: 0.2 });
    stepOn(other);
    const saved = other.stateDict();
    const { 'expAvg.0': _, ...rest } = saved.tensors;
    expect(() => optimizer.loadStateDict({ ...saved, tensors: { ...rest, x: leaf(1) } })).toThrow(
      'expAvg.1 expected [1], got [2]; expAvgSq.1 expected [1], got [2]; unexpected x; missing expAvg.0. Nothing was changed.',
    );
    expect(optimizer.lr).toBe(0.1);
    const small = new Adam([leaf(1)]);
    expect(() => small.loadStateDict(saved)).toThrow('expected groups of 1 parameters, got 2');
    for (const steps of [-1, 1.5])
      expect(() => small.loadStateDict({ ...small.stateDict(), steps: [steps] })).toThrow(
        `steps.0 expected an integer ≥ 0, got ${steps}`,
      );
    const damaged = [
      { groups: [{}], steps: [0], tensors: {} },
      { groups: [null], steps: [0], tensors: {} },
      { groups: [{ params: [0] }], steps: [0], tensors: { 'expAvg.0': null } },
    ];
    for (const none of [{}, null, undefined, 5, { groups: [], tensors: {} }, ...damaged] as never[])
      for (const each of [small, new LBFGS([leaf(1)])])
        expect(() => each.loadStateDict(none)).toThrow(
          'loadStateDict: state: expected a state with groups, steps and tensors, as stateDict() returns',
        );
    const wrong = { ...small.stateDict(), groups: [{ ...small.stateDict().groups[0]!, lr: -1 }] };
    expect(codeOf(() => small.loadStateDict(wrong))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('forgets what the saved optimiser did not have', () => {
    const optimizer = new SGD([leaf(1, -2)], { lr: 0.1, momentum: 0.9 });
    const fresh = new SGD([leaf(1, -2)], { lr: 0.2, momentum: 0.9 }).stateDict();
    const before = memory().tensors;
    stepOn(optimizer);
    optimizer.zeroGrad();
    const [name, state] = Object.entries(optimizer.stateDict().tensors)[0]!;
    expect(state.toArray()).not.toEqual([0, 0]);
    optimizer.loadStateDict(fresh);
    // The same memory, because a captured step would go on with it.
    expect([optimizer.lr, optimizer.stateDict().tensors[name], state.toArray()]).toEqual([
      0.2,
      state,
      [0, 0],
    ]);
    optimizer.loadStateDict({ ...fresh, groups: fresh.groups.map((group) => ({ ...group, momentum: 0 })) });
    expect([memory().tensors, optimizer.stateDict().tensors]).toEqual([before, {}]);
  });
});

test.each([
  ['SGD', (p: Tensor[]) => new SGD(p, { lr: 0.5 })],
  ['Adagrad', (p: Tensor[]) => new Adagrad(p, { lr: 0.5 })],
])('a step of %s calls its closure first, also inside noGrad(), and returns the loss', (name, make) => {
  const p = leaf(3, -2);
  const optimizer = make([p]);
  const loss = noGrad(() =>
    optimizer.step(() => {
      optimizer.zeroGrad();
      const own = p.square().mul(0.5).sum();
      keep(own).backward();
      return own;
    }),
  );
  expect(loss.item()).toBe(6.5);
  // The optimiser of sharded states reads this.
  expect(optimizer.step).toHaveLength(0);
  expectClose(p.toArray() as number[], name === 'SGD' ? [1.5, -1] : [2.5, -1.5]);
  expect(() => optimizer.step(1 as never)).toThrow(
    `${name}: step: expected nothing, or a function that computes the loss, calls backward and returns the loss, got 1.`,
  );
  expect(() => optimizer.step((() => {}) as never)).toThrow(
    `${name}: the result of the function of step: expected a tensor, got undefined.`,
  );
});

test.each([SGD, Adam, Lion, Adagrad, Adamax, NAdam, Adafactor, LBFGS])(
  '%o refuses options that are no numbers any more, and changes nothing',
  (Optimiser) => {
    const p = parameter(tensor([[1, -2]]));
    const optimizer = new Optimiser([p], { lr: 0.1 });
    const half = (): Tensor => {
      optimizer.zeroGrad();
      const loss = p.square().mul(0.5).sum();
      keep(loss).backward();
      return loss;
    };
    const [group] = optimizer.groups as unknown as [Record<string, unknown>];
    for (const value of [undefined, null, '0.1', Number.NaN]) {
      group.lr = value;
      expect(() => optimizer.step(half)).toThrow(`${Optimiser.name}: lr of a group: expected a number, got `);
    }
    group.lr = 0.1;
    if ('betas' in group) {
      for (const value of [[0.9], [0.9, Number.NaN], 0.9]) {
        group.betas = value;
        expect(() => optimizer.step(half)).toThrow('betas of a group: expected 2 numbers, got ');
      }
      group.betas = [0.9, 0.99];
    }
    expect(p.toArray()).toEqual([[1, -2]]);
    optimizer.step(half);
    expect(p.toArray()).not.toEqual([[1, -2]]);
  },
);

test('lists among the options belong to one group: not to the caller, other groups, states or later optimisers', () => {
  const betas: [number, number] = [0.8, 0.9];
  const adam = new Adam([{ params: [leaf(1)] }, { params: [leaf(2)] }], { betas });
  const saved = adam.stateDict();
  const write = (optimizer: Adam, value: number): void => {
    (optimizer.groups[0]!.betas as [number, number])[0] = value;
  };
  write(adam, 0.5);
  expect([betas, adam.groups[1]!.betas, saved.groups[0]!.betas]).toEqual([betas, betas, betas]);
  const next = new Adam([{ params: [leaf(1)] }, { params: [leaf(2)] }]);
  next.loadStateDict(saved);
  write(next, 0.4);
  expect(saved.groups[0]!.betas).toEqual([0.8, 0.9]);
  write(new Adam([leaf(1)]), 0.3);
  expect(new Adam([leaf(1)]).groups[0]!.betas).toEqual([0.9, 0.999]);
});

test('an own optimiser is a class with a step', () => {
  class SignDescent extends Optimizer<{ lr: number }> {
    protected check(): void {}
    protected remembers(): readonly string[] {
      return ['moves'];
    }
    step(): void {
      for (const { params, lr } of this.groups)
        for (const param of params) {
          const moves = this.stateOf(param).tensor('moves', param);
          moves.add_(1);
          param.detach().sub_(param.grad!.sign().mul(lr));
        }
    }
  }
  const p = leaf(1, -2);
  const optimizer = new SignDescent([p], { lr: 0.5 });
  stepOn(optimizer);
  expect(p.toArray()).toEqual([0.5, -1.5]);
  expect(optimizer.stateDict().tensors['moves.0']!.toArray()).toEqual([1, 1]);
});
