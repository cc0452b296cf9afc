// Tests several schedules of one optimizer, and rates that the program sets. The numbers are PyTorch's (2.13).
import { expect, test } from 'vitest';
import { ones } from '../../../src/index.ts';
import { parameter } from '../../../src/nn/index.ts';
import {
  ChainedScheduler,
  ConstantLR,
  CosineAnnealingLR,
  ExponentialLR,
  LambdaLR,
  LinearLR,
  MultiplicativeLR,
  MultiStepLR,
  PolynomialLR,
  type Schedule,
  SequentialLR,
  SGD,
  StepLR,
} from '../../../src/optim/index.ts';

const sgd = () => new SGD([parameter(ones([1]))], { lr: 1 });
const halved = (o: SGD) => new StepLR(o, { stepSize: 2, gamma: 0.5 });
const decayed = (o: SGD) => new ExponentialLR(o, { gamma: 0.9 });
const inverse = (o: SGD) => new LambdaLR(o, (step) => 1 / (step + 1));

const cases: Record<string, [make: (o: SGD) => Schedule[], rates: number[]]> = {
  'StepLR and ExponentialLR': [
    (o) => [halved(o), decayed(o)],
    [1, 0.9, 0.405, 0.3645, 0.164025, 0.147623, 0.06643],
  ],
  'ConstantLR and ExponentialLR': [
    (o) => [new ConstantLR(o, { factor: 0.1, totalSteps: 2 }), decayed(o)],
    [0.1, 0.09, 0.81, 0.729, 0.6561, 0.59049, 0.531441],
  ],
  'LinearLR and MultiStepLR': [
    (o) => [
      new LinearLR(o, { startFactor: 0.5, totalSteps: 3 }),
      new MultiStepLR(o, { milestones: [2, 4], gamma: 0.1 }),
    ],
    [0.5, 0.666667, 0.083333, 0.1, 0.01, 0.01, 0.01],
  ],
  'CosineAnnealingLR and ExponentialLR': [
    (o) => [new CosineAnnealingLR(o, { tMax: 4, etaMin: 0.1 }), decayed(o)],
    [1, 0.781378, 0.449228, 0.182058, 0.09, 0.199622, 0.396117],
  ],
  'PolynomialLR and StepLR': [
    (o) => [new PolynomialLR(o, { totalSteps: 5, power: 2 }), halved(o)],
    [1, 0.64, 0.18, 0.08, 0.01, 0, 0],
  ],
  'MultiplicativeLR and StepLR': [
    (o) => [new MultiplicativeLR(o, () => 0.9), halved(o)],
    [1, 0.9, 0.405, 0.3645, 0.164025, 0.147623, 0.06643],
  ],
  'StepLR and LambdaLR, which replaces the rate': [
    (o) => [halved(o), inverse(o)],
    [1, 0.5, 0.333333, 0.25, 0.2, 0.166667, 0.142857],
  ],
  'LambdaLR and StepLR': [(o) => [inverse(o), halved(o)], [1, 0.5, 0.166667, 0.25, 0.1, 0.166667, 0.071429]],
};

/** Returns the rates of `count` steps. Before step `at`, the program sets the rate to 10. */
function ratesOf(make: (o: SGD) => Schedule[], count: number, at = -1): number[] {
  const optimizer = sgd();
  const schedules = make(optimizer);
  const rates = [optimizer.lr];
  for (let step = 0; step < count; step++) {
    if (step === at) optimizer.lr = 10;
    for (const schedule of schedules) schedule.step();
    rates.push(optimizer.lr);
  }
  return rates.map((rate) => Number(rate.toFixed(6)));
}

test.each(Object.entries(cases))('%s', (_, [make, rates]) => {
  expect(ratesOf(make, 6)).toEqual(rates);
});

const warm = (o: SGD) => {
  const schedules = [
    new LinearLR(o, { startFactor: 0.5, totalSteps: 3 }),
    new CosineAnnealingLR(o, { tMax: 4 }),
  ];
  return new SequentialLR(o, { schedules, milestones: [3] });
};
const chained = (o: SGD) => new ChainedScheduler(o, [halved(o), decayed(o)]);

test('a rate that the program sets is multiplied within the turn of a schedule of SequentialLR', () => {
  const of = (at: number) => ratesOf((o) => [warm(o)], 7, at);
  expect(of(1)).toEqual([0.5, 0.666667, 12.5, 1, 0.853553, 0.5, 0.146447, 0]);
  expect(of(2)).toEqual(of(-1));
  expect(of(4)).toEqual([0.5, 0.666667, 0.833333, 1, 0.853553, 5.857864, 1.715729, 0]);
});

test('a rate that the program sets is multiplied by ChainedScheduler', () => {
  const of = (at: number) => ratesOf((o) => [chained(o)], 7, at);
  expect(of(2)).toEqual([1, 0.9, 0.405, 9, 4.05, 3.645, 1.64025, 1.476225]);
  expect(of(4)).toEqual([1, 0.9, 0.405, 0.3645, 0.164025, 9, 4.05, 3.645]);
  const constant = (o: SGD) => new ChainedScheduler(o, [new ConstantLR(o, { factor: 0.5 }), halved(o)]);
  expect(ratesOf((o) => [constant(o)], 2)).toEqual([0.5, 0.5, 0.25]);
  const replacing = (o: SGD) => new ChainedScheduler(o, [halved(o), inverse(o)]);
  expect(ratesOf((o) => [replacing(o)], 4, 1)).toEqual(ratesOf((o) => [replacing(o)], 4));
});

test.each([
  ['SequentialLR', warm],
  ['ChainedScheduler', chained],
])('%s keeps the rate of a restored optimizer, and else sets that of its state', (_, make) => {
  const [restored, fresh] = [sgd(), sgd()];
  const schedules = [make(restored), make(fresh)];
  restored.lr = 10;
  for (const schedule of schedules) schedule.loadStateDict({ steps: 4 });
  expect(restored.lr).toBe(10);
  expect(fresh.lr).toBeCloseTo(ratesOf((o) => [make(o)], 4).at(-1)!, 6);
});

test('a rate that the program sets is multiplied from then on', () => {
  expect(ratesOf((o) => [halved(o)], 6, 1)).toEqual([1, 1, 5, 5, 2.5, 2.5, 1.25]);
  const cosine = (o: SGD) => [new CosineAnnealingLR(o, { tMax: 4 })];
  expect(ratesOf(cosine, 6, 1)).toEqual([1, 0.853553, 5.857864, 1.715729, 0, 0.146447, 0.5]);
});

test('several schedules continue from their states and that of the optimizer', () => {
  const make = () => {
    const optimizer = sgd();
    return { optimizer, schedules: [halved(optimizer), decayed(optimizer)] };
  };
  const [first, second] = [make(), make()];
  for (let step = 0; step < 3; step++) for (const schedule of first.schedules) schedule.step();
  second.optimizer.loadStateDict(first.optimizer.stateDict());
  for (const [i, schedule] of second.schedules.entries())
    schedule.loadStateDict(first.schedules[i]!.stateDict());
  expect(second.optimizer.lr).toBe(first.optimizer.lr);
  for (const { schedules } of [first, second]) for (const schedule of schedules) schedule.step();
  expect(second.optimizer.lr).toBe(first.optimizer.lr);
});
