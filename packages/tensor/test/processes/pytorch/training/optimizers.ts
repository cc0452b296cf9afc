// The optimisers and schedules of training.py's OPTIMIZERS and SCHEDULES, by the same names and in the same order.
import { keep, type Shape, scope, type Tensor, tensor } from '../../../../src/index.ts';
import * as o from '../../../../src/optim/index.ts';
import { wave } from './wave.ts';

type Make = (params: Tensor[]) => o.Optimizer;

export const optimizers: Readonly<Record<string, Make>> = {
  SGD: (p) => new o.SGD(p, { lr: 0.05 }),
  'SGD momentum': (p) => new o.SGD(p, { lr: 0.02, momentum: 0.9, dampening: 0.1, weightDecay: 0.01 }),
  'SGD nesterov': (p) => new o.SGD(p, { lr: 0.02, momentum: 0.9, nesterov: true }),
  Adam: (p) => new o.Adam(p, { lr: 0.02, weightDecay: 0.01 }),
  'Adam amsgrad': (p) => new o.Adam(p, { lr: 0.02, betas: [0.8, 0.95], amsgrad: true }),
  'Adam decoupled': (p) => new o.Adam(p, { lr: 0.02, weightDecay: 0.1, decoupledWeightDecay: true }),
  AdamW: (p) => new o.AdamW(p, { lr: 0.02, weightDecay: 0.1 }),
  RMSprop: (p) => new o.RMSprop(p, { lr: 0.01 }),
  'RMSprop centered': (p) =>
    new o.RMSprop(p, { lr: 0.005, alpha: 0.9, momentum: 0.5, centered: true, weightDecay: 0.01 }),
  Lion: (p) => new o.Lion(p, { lr: 0.01, betas: [0.9, 0.99], weightDecay: 0.1 }),
  Adagrad: (p) => new o.Adagrad(p, { lr: 0.05 }),
  'Adagrad decay': (p) =>
    new o.Adagrad(p, {
      ...{ lr: 0.1, lrDecay: 0.02, weightDecay: 0.01, initialAccumulatorValue: 0.1, eps: 1e-8 },
      maximize: true,
    }),
  Adadelta: (p) => new o.Adadelta(p),
  'Adadelta decay': (p) =>
    new o.Adadelta(p, { lr: 0.5, rho: 0.8, eps: 1e-4, weightDecay: 0.02, maximize: true }),
  Adamax: (p) => new o.Adamax(p, { lr: 0.02 }),
  'Adamax decay': (p) => new o.Adamax(p, { lr: 0.01, betas: [0.4, 0.9], weightDecay: 0.1, maximize: true }),
  NAdam: (p) => new o.NAdam(p, { lr: 0.02 }),
  'NAdam decay': (p) =>
    new o.NAdam(p, { lr: 0.01, betas: [0.8, 0.95], weightDecay: 0.05, momentumDecay: 0.01, maximize: true }),
  'NAdam decoupled': (p) => new o.NAdam(p, { lr: 0.02, weightDecay: 0.1, decoupledWeightDecay: true }),
  RAdam: (p) => new o.RAdam(p, { lr: 0.02 }),
  'RAdam decay': (p) => new o.RAdam(p, { lr: 0.02, betas: [0.8, 0.95], weightDecay: 0.05, maximize: true }),
  'RAdam decoupled': (p) =>
    new o.RAdam(p, { lr: 0.02, betas: [0.9, 0.99], weightDecay: 0.1, decoupledWeightDecay: true }),
  ASGD: (p) => new o.ASGD(p, { lr: 0.05 }),
  'ASGD averaged': (p) => new o.ASGD(p, { lr: 0.05, lambd: 0.02, alpha: 0.6, t0: 2, weightDecay: 0.01 }),
  Rprop: (p) => new o.Rprop(p),
  'Rprop bounds': (p) =>
    new o.Rprop(p, { lr: 0.02, etas: [0.4, 1.3], stepSizes: [0.005, 0.1], maximize: true }),
  Adafactor: (p) => new o.Adafactor(p),
  'Adafactor decay': (p) =>
    new o.Adafactor(p, {
      ...{ lr: 0.05, beta2Decay: -0.6, eps: [1e-4, 1e-2], d: 1.5, weightDecay: 0.1, maximize: true },
    }),
  Muon: (p) => new o.Muon(p, { lr: 0.02 }),
  'Muon adjusted': (p) =>
    new o.Muon(p, {
      ...{ lr: 0.02, momentum: 0.8, nesterov: false, weightDecay: 0.01, nsSteps: 3 },
      adjustLrFn: 'match_rms_adamw',
    }),
  LBFGS: (p) => new o.LBFGS(p, { lr: 0.1, maxIter: 4, historySize: 3 }),
  'LBFGS searching': (p) => new o.LBFGS(p, { maxIter: 3, lineSearchFn: 'strong_wolfe' }),
};

const shapesOf = (name: string): number[][] =>
  name.startsWith('Muon')
    ? [
        [4, 3],
        [2, 3],
      ]
    : [[7], [2, 3], [2, 2, 3]];

/** Returns the parameters after these steps. Element i of parameter n has the gradient p + sin(0.3 step + i + n). */
export function stepsOf(name: string, dtype: 'float32' | 'float64', seenAt: readonly number[]): number[][] {
  const params = shapesOf(name).map((shape, n) => wave(shape, n + 1, 1.5, dtype));
  return steps(params, optimizers[name]!(params), 0, seenAt);
}

/** What training.py saved of an optimiser in the middle of its steps, and the parameters at the end. */
export interface Resumed {
  /** The number of steps that PyTorch made. */
  readonly step: number;
  readonly groups: readonly o.TorchParamGroup[];
  readonly tensors: Readonly<Record<string, { readonly shape: Shape; readonly values: number[] }>>;
  readonly params: readonly number[][];
  /** The parameters after 20 steps. */
  readonly after: readonly number[];
}

/** Loads a state of PyTorch into an optimiser with other options, and returns the parameters after 20 steps. */
export function resumedSteps(name: string, { step, groups, tensors, params: values }: Resumed): number[] {
  const params = shapesOf(name).map((shape, n) =>
    tensor(values[n]!, { shape, dtype: 'float64', requiresGrad: true }),
  );
  const optimizer = optimizers[name]!(params);
  optimizer.lr = 0.25; // the state has another
  const own = Object.entries(tensors).map(([key, { shape, values: all }]): [string, Tensor] => [
    key,
    tensor(all, { shape, dtype: 'float64' }),
  ]);
  optimizer.loadStateDict(o.fromTorchState(optimizer, Object.fromEntries(own), groups));
  return steps(params, optimizer, step, [20])[0]!;
}

function steps(
  params: readonly Tensor[],
  optimizer: o.Optimizer,
  first: number,
  seenAt: readonly number[],
): number[][] {
  const lossAt = (step: number): Tensor => {
    optimizer.zeroGrad();
    const losses = params.map((p, n) => {
      const push = Array.from({ length: p.count }, (_, i) => Math.sin(step * 0.3 + i + n));
      return p
        .square()
        .sum()
        .mul(0.5)
        .add(
          p
            .flatten()
            .mul(tensor(push, { dtype: p.dtype }))
            .sum(),
        );
    });
    const loss = losses.reduce((a, b) => a.add(b));
    keep(loss).backward();
    return loss;
  };
  const seen: number[][] = [];
  for (let step = first; step < seenAt.at(-1)!; step++) {
    if (optimizer instanceof o.LBFGS) optimizer.step(() => lossAt(step)).dispose();
    else
      scope(() => {
        lossAt(step).dispose();
        optimizer.step();
      });
    if (seenAt.includes(step + 1))
      seen.push(params.flatMap((p) => [...(p.dataSync() as Float32Array | Float64Array)]));
  }
  return seen;
}

function rates(make: (optimizer: o.SGD) => o.Schedule | o.SWALR | o.ReduceLROnPlateau): () => number[] {
  return () => {
    const schedule = make(new o.SGD([wave([1], 0)], { lr: 0.4, momentum: 0.9 }));
    return Array.from({ length: 24 }, (_, step) => {
      const [lr] = schedule.lastLr;
      if (step === 23) return lr!; // a cycle of 23 steps takes no more
      if (schedule instanceof o.ReduceLROnPlateau) schedule.step(Math.sin(step * 0.8) / (1 + step * 0.3));
      else schedule.step();
      return lr!;
    });
  };
}

export const schedules: Readonly<Record<string, () => number[]>> = {
  StepLR: rates((sgd) => new o.StepLR(sgd, { stepSize: 5, gamma: 0.5 })),
  MultiStepLR: rates((sgd) => new o.MultiStepLR(sgd, { milestones: [3, 9], gamma: 0.3 })),
  LambdaLR: rates((sgd) => new o.LambdaLR(sgd, (step) => 1 / (1 + step))),
  ExponentialLR: rates((sgd) => new o.ExponentialLR(sgd, { gamma: 0.9 })),
  CosineAnnealingLR: rates((sgd) => new o.CosineAnnealingLR(sgd, { tMax: 10, etaMin: 0.01 })),
  LinearLR: rates((sgd) => new o.LinearLR(sgd, { startFactor: 0.25, endFactor: 0.75, totalSteps: 6 })),
  OneCycleLR: rates((sgd) => new o.OneCycleLR(sgd, { maxLr: 1, totalSteps: 24 })),
  'OneCycleLR to the end': rates((sgd) => new o.OneCycleLR(sgd, { maxLr: 1, totalSteps: 23 })),
  'OneCycleLR to the end, linear': rates(
    (sgd) => new o.OneCycleLR(sgd, { maxLr: 1, totalSteps: 23, annealStrategy: 'linear' }),
  ),
  'OneCycleLR in three phases': rates(
    (sgd) =>
      new o.OneCycleLR(sgd, {
        ...{ maxLr: 1, totalSteps: 24, pctStart: 0.4, threePhase: true, annealStrategy: 'linear' },
      }),
  ),
  ConstantLR: rates((sgd) => new o.ConstantLR(sgd, { factor: 0.3, totalSteps: 7 })),
  PolynomialLR: rates((sgd) => new o.PolynomialLR(sgd, { totalSteps: 15, power: 2 })),
  MultiplicativeLR: rates((sgd) => new o.MultiplicativeLR(sgd, (step) => 1 - 1 / (1 + step))),
  CosineAnnealingWarmRestarts: rates(
    (sgd) => new o.CosineAnnealingWarmRestarts(sgd, { t0: 3, tMult: 2, etaMin: 0.01 }),
  ),
  'CosineAnnealingWarmRestarts of equal length': rates(
    (sgd) => new o.CosineAnnealingWarmRestarts(sgd, { t0: 5 }),
  ),
  CyclicLR: rates((sgd) => new o.CyclicLR(sgd, { baseLr: 0.1, maxLr: 0.5, stepSizeUp: 4 })),
  'CyclicLR that halves': rates(
    (sgd) =>
      new o.CyclicLR(sgd, {
        ...{ baseLr: 0.1, maxLr: 0.5, stepSizeUp: 3, stepSizeDown: 2, mode: 'triangular2' },
      }),
  ),
  'CyclicLR that decays': rates(
    (sgd) =>
      new o.CyclicLR(sgd, { baseLr: [0.1], maxLr: [0.5], stepSizeUp: 3, mode: 'exp_range', gamma: 0.9 }),
  ),
  'CyclicLR by a function': rates(
    (sgd) => new o.CyclicLR(sgd, { baseLr: 0.1, maxLr: 0.5, stepSizeUp: 3, scaleFn: (x) => 1 / x }),
  ),
  ReduceLROnPlateau: rates((sgd) => new o.ReduceLROnPlateau(sgd, { patience: 2 })),
  'ReduceLROnPlateau upwards': rates(
    (sgd) =>
      new o.ReduceLROnPlateau(sgd, {
        ...{ mode: 'max', factor: 0.5, patience: 1, threshold: 0.01, thresholdMode: 'abs' },
        ...{ cooldown: 2, minLr: 0.03 },
      }),
  ),
  ChainedScheduler: rates((sgd) => {
    const constant = new o.ConstantLR(sgd, { factor: 0.1, totalSteps: 4 });
    const cosine = new o.CosineAnnealingLR(sgd, { tMax: 30 });
    return new o.ChainedScheduler(sgd, [constant, new o.ExponentialLR(sgd, { gamma: 0.9 }), cosine]);
  }),
  SWALR: rates((sgd) => new o.SWALR(sgd, { swaLr: 0.05, annealEpochs: 8 })),
  'SWALR linear': rates(
    (sgd) => new o.SWALR(sgd, { swaLr: [0.05], annealEpochs: 6, annealStrategy: 'linear' }),
  ),
  'SWALR at once': rates((sgd) => new o.SWALR(sgd, { swaLr: 0.05, annealEpochs: 0 })),
  SequentialLR: rates((sgd) => {
    const warmup = new o.LinearLR(sgd, { startFactor: 0.1, totalSteps: 4 });
    const schedules = [warmup, new o.CosineAnnealingLR(sgd, { tMax: 20 })];
    return new o.SequentialLR(sgd, { schedules, milestones: [4] });
  }),
};
