// Tests schedules of the learning rate.
import { describe, expect, test } from 'vitest';
import { ones, tensor } from '../../../src/index.ts';
import { parameter } from '../../../src/nn/index.ts';
import {
  Adam,
  ChainedScheduler,
  ConstantLR,
  CosineAnnealingLR,
  CosineAnnealingWarmRestarts,
  CyclicLR,
  ExponentialLR,
  LambdaLR,
  LinearLR,
  MultiplicativeLR,
  MultiStepLR,
  OneCycleLR,
  PolynomialLR,
  ReduceLROnPlateau,
  RMSprop,
  type Schedule,
  SequentialLR,
  SGD,
  StepLR,
  SWALR,
  WarmupCosineLR,
} from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';

const sgd = (): SGD => new SGD([parameter(ones([1]))], { lr: 1, momentum: 0.5 });

/** Returns the rate before the first step and after each of `count - 1` steps. */
function rates(schedule: Schedule, count: number): number[] {
  return Array.from({ length: count }, () => {
    const [lr] = schedule.lastLr;
    schedule.step();
    return lr!;
  });
}
function expectRates(schedule: Schedule, want: readonly number[]): void {
  for (const [i, lr] of rates(schedule, want.length).entries()) expect(lr).toBeCloseTo(want[i]!, 12);
}

describe('rates', () => {
  const cosine = (share: number): number => (1 + Math.cos(Math.PI * share)) / 2;

  test.each<[string, (optimizer: SGD) => Schedule, number[]]>([
    ['StepLR', (o) => new StepLR(o, { stepSize: 2 }), [1, 1, 0.1, 0.1, 0.01]],
    ['MultiStepLR', (o) => new MultiStepLR(o, { milestones: [1, 3], gamma: 0.5 }), [1, 0.5, 0.5, 0.25, 0.25]],
    ['ExponentialLR', (o) => new ExponentialLR(o, { gamma: 0.5 }), [1, 0.5, 0.25, 0.125]],
    ['LambdaLR', (o) => new LambdaLR(o, (steps) => 1 / (steps + 1)), [1, 1 / 2, 1 / 3, 1 / 4]],
    [
      'LinearLR',
      (o) => new LinearLR(o, { startFactor: 0.5, totalSteps: 4 }),
      [0.5, 0.625, 0.75, 0.875, 1, 1],
    ],
    [
      'CosineAnnealingLR',
      (o) => new CosineAnnealingLR(o, { tMax: 4, etaMin: 0.2 }),
      [0, 1, 2, 3, 4, 5].map((i) => 0.2 + 0.8 * cosine(i / 4)),
    ],
    [
      'WarmupCosineLR',
      (o) => new WarmupCosineLR(o, { warmupSteps: 3, totalSteps: 7 }),
      [0.25, 0.5, 0.75, 1, ...[1, 2, 3, 4, 4].map((i) => 0.1 + 0.9 * cosine(i / 4))],
    ],
    [
      'OneCycleLR',
      (o) => new OneCycleLR(o, { maxLr: 10, totalSteps: 11, pctStart: 5 / 11, annealStrategy: 'linear' }),
      [0.4, 2.8, 5.2, 7.6, 10, 8 + 1 / 3, 6 + 2 / 3, 5, 3 + 1 / 3, 1 + 2 / 3].map((lr, i) =>
        i < 5 ? lr : 10 + ((4e-5 - 10) * (i - 4)) / 6,
      ),
    ],
  ])('%s', (_, make, want) => {
    expectRates(make(sgd()), want);
  });

  test('each group starts from its own rate', () => {
    const params = [1, 2].map(() => parameter(ones([1])));
    const optimizer = new SGD([{ params: [params[0]!] }, { params: [params[1]!], lr: 4 }], { lr: 1 });
    const schedule = new LambdaLR(optimizer, [(steps) => steps, () => 0.5]);
    schedule.step();
    schedule.step();
    expect(schedule.lastLr).toEqual([2, 2]);
    expect(codeOf(() => new LambdaLR(optimizer, [() => 1]))).toBe('ERR_TENSOR_ARGUMENT');
  });
});

describe('OneCycleLR', () => {
  test('moves momentum the other way, for SGD and for Adam', () => {
    const adam = new Adam([parameter(ones([1]))]);
    const options = { maxLr: 1, totalSteps: 11, pctStart: 6 / 11 } as const;
    const [a, b] = [new OneCycleLR(adam, options), new OneCycleLR(sgd(), { ...options, threePhase: true })];
    expect(adam.groups[0]!.betas[0]).toBeCloseTo(0.95, 12);
    for (let i = 0; i < 5; i++) for (const schedule of [a, b]) schedule.step();
    expect([a.lastLr[0], adam.groups[0]!.betas]).toEqual([1, [expect.closeTo(0.85, 12), 0.999]]);
    for (let i = 0; i < 5; i++) a.step();
    expect(a.lastLr[0]).toBeCloseTo(4e-6, 12);
    expect(adam.groups[0]!.betas[0]).toBeCloseTo(0.95, 12);
  });

  test('takes a maximum for each group, with the rates of PyTorch', () => {
    const groups = [0.1, 0.2].map((lr) => ({ params: [parameter(ones([1]))], lr }));
    const optimizer = new SGD(groups, { lr: 0.1, momentum: 0.9 });
    const options = { maxLr: [0.5, 0.7], totalSteps: 15, maxMomentum: [0.9, 0.8] };
    const schedule = new OneCycleLR(optimizer, options);
    const seen: number[][] = [];
    for (let i = 0; i < 4; i++, schedule.step()) seen.push([...schedule.lastLr]);
    const expected = [
      [0.02, 0.028],
      [0.110362447554, 0.154507426575],
      [0.31340502415, 0.438767033809],
      [0.476232528297, 0.666725539615],
    ];
    for (const [i, rates] of seen.entries())
      expect(rates).toEqual(expected[i]!.map((rate) => expect.closeTo(rate, 11)));
    expect(optimizer.groups.map(({ momentum }) => momentum)).toEqual([
      expect.closeTo(0.8502792293443717, 12),
      expect.closeTo(0.8497207706556282, 12),
    ]);
    expect(() => new OneCycleLR(optimizer, { ...options, maxLr: [1] })).toThrow(
      'OneCycleLR: maxLr: expected a number, or 2, one for each group',
    );
    expect(() => new OneCycleLR(optimizer, { ...options, maxLr: [1, 0] })).toThrow(
      'a number > 0, or a list of them',
    );
  });

  test('counts its steps by epochs, as in PyTorch, if totalSteps is not given', () => {
    const ratesOf = (options: object): number[] =>
      rates(new OneCycleLR(sgd(), { maxLr: 0.3, ...options }), 12);
    const want = ratesOf({ totalSteps: 12 });
    expect(ratesOf({ epochs: 3, stepsPerEpoch: 4 })).toEqual(want);
    expect(ratesOf({ totalSteps: 12, epochs: 100, stepsPerEpoch: 4 })).toEqual(want);
    expect(() => ratesOf({ epochs: 3 })).toThrow(
      'OneCycleLR: totalSteps: expected a number of steps, or epochs and stepsPerEpoch, got none.',
    );
    expect(() => ratesOf({ epochs: 1.5, stepsPerEpoch: 2 })).toThrow(
      'OneCycleLR: epochs: expected an integer ≥ 1',
    );
  });

  test('comes down in three phases', () => {
    const schedule = new OneCycleLR(sgd(), {
      ...{ maxLr: 25, totalSteps: 10, pctStart: 0.4, annealStrategy: 'linear' },
      ...{ threePhase: true, finalDivFactor: 10, cycleMomentum: false },
    });
    expectRates(schedule, [1, 9, 17, 25, 17, 9, 1, 0.7, 0.4, 0.1]);
  });

  test('refuses an optimiser without anything to cycle', () => {
    const optimizer = new RMSprop([parameter(ones([1]))]);
    const make = (): OneCycleLR => new OneCycleLR(optimizer, { maxLr: 1, totalSteps: 4 });
    expect(make).not.toThrow();
    const groups = optimizer.groups as unknown as { momentum?: number }[];
    delete groups[0]!.momentum;
    expect(make).toThrow('expected an optimiser with momentum or betas');
  });
});

describe('SequentialLR', () => {
  test('refuses a call without schedules with a sentence', () => {
    expect(() => new SequentialLR(sgd(), undefined as never)).toThrow(
      'SequentialLR: options: expected an object with schedules, got none',
    );
  });

  const make = (optimizer: SGD): SequentialLR =>
    new SequentialLR(optimizer, {
      schedules: [
        new LinearLR(optimizer, { startFactor: 0.5, totalSteps: 2 }),
        new ExponentialLR(optimizer, { gamma: 0.5 }),
      ],
      milestones: [2],
    });

  test('runs one after the other, each from its own beginning', () => {
    expectRates(make(sgd()), [0.5, 0.75, 1, 0.5, 0.25]);
  });

  test('needs one milestone less than schedules, in order', () => {
    const optimizer = sgd();
    const schedules = [1, 2, 3].map(() => new ExponentialLR(optimizer, { gamma: 1 }));
    for (const milestones of [[1], [2, 1], [0, 1]]) {
      expect(codeOf(() => new SequentialLR(optimizer, { schedules, milestones }))).toBe(
        'ERR_TENSOR_ARGUMENT',
      );
    }
  });

  test('goes on from its state', () => {
    const first = make(sgd());
    for (let i = 0; i < 3; i++) first.step();
    const optimizer = sgd();
    const second = make(optimizer);
    second.loadStateDict(JSON.parse(JSON.stringify(first.stateDict())));
    expect([second.steps, second.lastLr]).toEqual([3, [0.5]]);
    second.step();
    expect(optimizer.lr).toBe(0.25);
    expect(codeOf(() => second.loadStateDict({ steps: -1 }))).toBe('ERR_TENSOR_ARGUMENT');
  });
});

describe('ChainedScheduler', () => {
  test('multiplies the factors, sets momentum, and can be part of a sequence', () => {
    const optimizer = sgd();
    const cycle = new CyclicLR(optimizer, { baseLr: 1, maxLr: 2, stepSizeUp: 2 });
    const chain = new ChainedScheduler(optimizer, [cycle, new ExponentialLR(optimizer, { gamma: 0.5 })]);
    expect([optimizer.lr, optimizer.groups[0]!.momentum]).toEqual([1, 0.9]);
    chain.step();
    chain.step();
    expect(optimizer.lr).toBe(2 * 0.25);
    expect(optimizer.groups[0]!.momentum).toBeCloseTo(0.8, 12);
    const other = new ExponentialLR(optimizer, { gamma: 1 });
    const sequence = new SequentialLR(optimizer, { schedules: [other, chain], milestones: [1] });
    sequence.step();
    sequence.step();
    expect(optimizer.lr).toBe(1.5 * 0.5);
  });
});

describe('MultiplicativeLR', () => {
  test('goes on from its state, and back', () => {
    const make = (optimizer: SGD): MultiplicativeLR =>
      new MultiplicativeLR(optimizer, [(steps) => 1 / (steps + 1)]);
    const optimizer = sgd();
    const schedule = make(optimizer);
    for (let i = 0; i < 3; i++) schedule.step();
    expect(optimizer.lr).toBeCloseTo(1 / 24, 12);
    const resumed = sgd();
    make(resumed).loadStateDict(schedule.stateDict());
    expect(resumed.lr).toBeCloseTo(1 / 24, 12);
    schedule.loadStateDict({ steps: 1 });
    expect(optimizer.lr).toBe(0.5);
    optimizer.addParamGroup({ params: [parameter(ones([1]))] });
    expect(() => schedule.step()).toThrow(
      'MultiplicativeLR: factors: expected one for each of 2 groups, got 1',
    );
  });
});

describe('ReduceLROnPlateau', () => {
  test('takes tensors, counts NaN as bad, and goes on from its state', () => {
    const optimizer = sgd();
    const schedule = new ReduceLROnPlateau(optimizer, { patience: 1, factor: 0.5, cooldown: 1 });
    schedule.step(tensor(1));
    schedule.step(NaN);
    expect(optimizer.lr).toBe(1);
    const state = JSON.parse(JSON.stringify(schedule.stateDict()));
    expect(state).toEqual({ steps: 2, best: 1, numBadSteps: 1, cooldownCounter: 0 });
    const other = sgd();
    const resumed = new ReduceLROnPlateau(other, { patience: 1, factor: 0.5, cooldown: 1 });
    resumed.loadStateDict(state);
    for (const each of [schedule, resumed]) each.step(2);
    expect([optimizer.lr, other.lr, resumed.steps, resumed.lastLr]).toEqual([0.5, 0.5, 3, [0.5]]);
    for (const bad of [{ best: '1' }, { steps: -1 }, { numBadSteps: 0.5 }])
      expect(codeOf(() => resumed.loadStateDict({ ...state, ...bad }))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => resumed.step('1' as never))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('keeps each group above its least rate', () => {
    const optimizer = new SGD([{ params: [parameter(ones([1]))] }, { params: [parameter(ones([1]))] }], {
      lr: 1,
    });
    const schedule = new ReduceLROnPlateau(optimizer, { patience: 0, minLr: [0.5, 0.01] });
    schedule.step(1);
    schedule.step(1);
    expect(schedule.lastLr).toEqual([0.5, 0.1]);
    optimizer.addParamGroup({ params: [parameter(ones([1]))] });
    expect(() => schedule.step(1)).toThrow('one for each of 3 groups');
  });
});

describe('SWALR', () => {
  test('starts from the rate at its first step, and goes on from its state', () => {
    const optimizer = sgd();
    const before = new ExponentialLR(optimizer, { gamma: 0.5 });
    const schedule = new SWALR(optimizer, { swaLr: 0.1, annealEpochs: 2, annealStrategy: 'linear' });
    before.step();
    schedule.step();
    expect(optimizer.lr).toBeCloseTo(0.3, 12);
    const resumed = sgd();
    const other = new SWALR(resumed, { swaLr: 0.1, annealEpochs: 2, annealStrategy: 'linear' });
    other.loadStateDict(JSON.parse(JSON.stringify(schedule.stateDict())));
    expect([resumed.lr, other.steps]).toEqual([optimizer.lr, 1]);
    for (let i = 0; i < 3; i++) other.step();
    expect(resumed.lr).toBe(0.1);
    expect(codeOf(() => other.loadStateDict({ steps: 1, startLrs: ['1'] as never }))).toBe(
      'ERR_TENSOR_ARGUMENT',
    );
  });

  test('refuses a state of another number of groups, and takes one with a group that was added', () => {
    const optimizer = sgd();
    const schedule = new SWALR(optimizer, { swaLr: 0.1, annealEpochs: 2 });
    for (const startLrs of [[], [1, 2], 5])
      expect(codeOf(() => schedule.loadStateDict({ steps: 1, startLrs } as never))).toBe(
        'ERR_TENSOR_ARGUMENT',
      );
    expect([schedule.steps, optimizer.lr]).toEqual([0, 1]);
    optimizer.addParamGroup({ params: [parameter(ones([1]))], lr: 2 });
    expect(schedule.stateDict().startLrs).toEqual([1, 2]);
    schedule.loadStateDict(schedule.stateDict());
  });

  test('is no part of a sequence', () => {
    const optimizer = sgd();
    const schedules = [new SWALR(optimizer, { swaLr: 0.1 })] as never;
    expect(() => new SequentialLR(optimizer, { schedules, milestones: [] })).toThrow('a list of schedules');
  });
});

test('CyclicLR sets each group apart, and the first beta of Adam', () => {
  const params = [1, 2].map(() => ({ params: [parameter(ones([1]))] }));
  const optimizer = new Adam(params);
  const schedule = new CyclicLR(optimizer, {
    ...{ baseLr: [0, 1], maxLr: [1, 3], stepSizeUp: 2, baseMomentum: 0.5, maxMomentum: [0.9, 0.7] },
    ...{ scaleFn: (steps: number) => 1 / (1 + steps), scaleMode: 'iterations' },
  });
  schedule.step();
  expect(schedule.lastLr).toEqual([0.25, 1.5]);
  const [a, b] = optimizer.groups.map((group) => group.betas[0]);
  expect(a).toBeCloseTo(0.9 - 0.4 / 4, 12);
  expect(b).toBeCloseTo(0.7 - 0.2 / 4, 12);
});

test('a restored optimiser keeps the rate from which its schedule starts', () => {
  const optimizer = sgd();
  const schedule = new ExponentialLR(optimizer, { gamma: 0.5 });
  schedule.step();
  const restored = sgd();
  restored.loadStateDict(optimizer.stateDict());
  expect(restored.lr).toBe(0.5);
  const next = new ExponentialLR(restored, { gamma: 0.5 });
  next.loadStateDict(schedule.stateDict());
  next.step();
  expect(restored.lr).toBe(0.25);
});

test('a group that is added later starts from its own rate; one function for each group then misses one', () => {
  const optimizer = sgd();
  const each = new LambdaLR(sgd(), [(steps) => steps]);
  const schedule = new ExponentialLR(optimizer, { gamma: 0.5 });
  const factors = new LambdaLR(optimizer, [() => 1]);
  schedule.step();
  optimizer.addParamGroup({ params: [parameter(ones([1]))], lr: 8 });
  schedule.step();
  expect(schedule.lastLr).toEqual([0.25, 2]);
  expect(() => factors.step()).toThrow('LambdaLR: factors: expected one for each of 2 groups, got 1');
  each.step();
});

test('setAt() refuses what is no number of steps', () => {
  const parts = { schedules: [new StepLR(sgd(), { stepSize: 1 })], milestones: [] };
  for (const schedule of [
    new ExponentialLR(sgd(), { gamma: 0.5 }),
    new OneCycleLR(sgd(), { maxLr: 1, totalSteps: 4 }),
    new SequentialLR(sgd(), parts),
  ])
    for (const steps of [Symbol('steps'), '1', -1, Number.NaN, undefined])
      expect(codeOf(() => schedule.setAt(steps as never))).toBe('ERR_TENSOR_ARGUMENT');
});

test('a schedule that needs options says so', () => {
  for (const Made of [
    ...[StepLR, MultiStepLR, ExponentialLR, CosineAnnealingLR, WarmupCosineLR, OneCycleLR],
    ...[CosineAnnealingWarmRestarts, CyclicLR],
  ]) {
    const make = (): Schedule => new (Made as new (optimizer: SGD, options?: object) => Schedule)(sgd());
    expect(make).toThrow(`${Made.name}: options: expected an object with`);
    expect(codeOf(make)).toBe('ERR_TENSOR_ARGUMENT');
  }
});

test('CosineAnnealingWarmRestarts goes to an epoch with a fraction, as in PyTorch, and on from there', () => {
  const make = (): CosineAnnealingWarmRestarts =>
    new CosineAnnealingWarmRestarts(sgd(), { t0: 2, tMult: 2, etaMin: 0.1 });
  const schedule = make();
  expect(codeOf(() => schedule.loadStateDict(null as never))).toBe('ERR_TENSOR_ARGUMENT');
  const lrOf = (each: CosineAnnealingWarmRestarts, epoch?: number): number => {
    each.step(epoch);
    return each.lastLr[0]!;
  };
  for (const [epoch, want] of [
    [0.5, 0.868198051534],
    [1.25, 0.377792455436],
    [2, 1],
    [5.9, 0.10138719982],
    [7.25, 0.946864568957],
  ] as const)
    expect(lrOf(schedule, epoch)).toBeCloseTo(want, 11);
  const resumed = make();
  resumed.loadStateDict(schedule.stateDict());
  for (const each of [schedule, resumed]) expect(lrOf(each)).toBeCloseTo(0.835476977874, 11);
  expect(lrOf(schedule, 0.5)).toBeCloseTo(0.868198051534, 11);
  expect(codeOf(() => schedule.step(-1))).toBe('ERR_TENSOR_ARGUMENT');
});

test('OneCycleLR refuses steps beyond its total, also as a part and from a state', () => {
  const make = (optimizer: SGD): OneCycleLR => new OneCycleLR(optimizer, { maxLr: 1, totalSteps: 3 });
  const schedule = make(sgd());
  for (let i = 0; i < 3; i++) schedule.step();
  const sentence = 'OneCycleLR: expected at most 3 steps, as totalSteps says, got 4.';
  expect(() => schedule.step()).toThrow(sentence);
  const optimizer = sgd();
  const chain = new ChainedScheduler(optimizer, [make(optimizer)]);
  for (let i = 0; i < 3; i++) chain.step();
  expect(() => chain.step()).toThrow(sentence);
  expect(() => make(sgd()).loadStateDict({ steps: 4 })).toThrow(sentence);
});

test('LinearLR and ConstantLR keep their factor with a total of 0 steps, PolynomialLR the initial rate', () => {
  const options = { totalSteps: 0 };
  expectRates(new LinearLR(sgd(), { startFactor: 0.5, endFactor: 0.25, ...options }), [0.5, 0.5, 0.5]);
  expectRates(new ConstantLR(sgd(), { factor: 0.25, ...options }), [0.25, 0.25, 0.25]);
  expectRates(new PolynomialLR(sgd(), options), [1, 1, 1]);
  expect(codeOf(() => new LinearLR(sgd(), { totalSteps: -1 }))).toBe('ERR_TENSOR_ARGUMENT');
});

test('OneCycleLR that begins at the top has that rate', () => {
  const cycle = new OneCycleLR(sgd(), { maxLr: 2, totalSteps: 10, pctStart: 0.1 });
  expect(cycle.lastLr).toEqual([2]);
  expect(new OneCycleLR(sgd(), { maxLr: 2, totalSteps: 1 }).lastLr.every(Number.isFinite)).toBe(true);
});

test('schedules do not follow changes of the lists that they were given', () => {
  const [base, max, least] = [[0.1], [1], [0.5]];
  const plateau = new ReduceLROnPlateau(sgd(), { patience: 0, minLr: least });
  const cyclic = new CyclicLR(sgd(), { baseLr: base, maxLr: max, stepSizeUp: 2 });
  const cycle = new OneCycleLR(sgd(), { maxLr: max, totalSteps: 10, pctStart: 0.5 });
  base[0] = 5;
  max[0] = 7;
  least[0] = 0;
  for (let i = 0; i < 3; i++) plateau.step(1);
  expect(plateau.lastLr).toEqual([0.5]);
  expectRates(cyclic, [0.1, 0.55, 1, 0.55, 0.1]);
  expect(Math.max(...rates(cycle, 9))).toBe(1);
});

test('step() refuses an epoch or a loss, which would have no effect', () => {
  const swa = new SWALR(sgd(), { swaLr: 0.1 });
  const multiplied = new MultiplicativeLR(sgd(), () => 0.5);
  for (const schedule of [new StepLR(sgd(), { stepSize: 1 }), multiplied, swa]) {
    const step = schedule.step.bind(schedule) as (epoch?: number) => void;
    expect(() => step(5)).toThrow(
      `${schedule.constructor.name}.step: expected no arguments, got 5. Each call is one step:`,
    );
    expect(schedule.steps).toBe(0);
    step(undefined); // PyTorch's default is None
    expect(schedule.steps).toBe(1);
  }
});
