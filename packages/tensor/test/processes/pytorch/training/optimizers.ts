// The optimisers and schedules of training.py's OPTIMIZERS and SCHEDULES, by the same names and in the same order.
import { scope, type Tensor, tensor } from '../../../../src/index.ts';
import * as o from '../../../../src/optim/index.ts';
import { wave } from './wave.ts';

type Make = (params: Tensor[]) => o.Optimizer;

export const optimizers: Readonly<Record<string, Make>> = {
  SGD: (p) => new o.SGD(p, { lr: 0.05 }),
  'SGD momentum': (p) => new o.SGD(p, { lr: 0.02, momentum: 0.9, dampening: 0.1, weightDecay: 0.01 }),
  'SGD nesterov': (p) => new o.SGD(p, { lr: 0.02, momentum: 0.9, nesterov: true }),
  Adam: (p) => new o.Adam(p, { lr: 0.02, weightDecay: 0.01 }),
  'Adam amsgrad': (p) => new o.Adam(p, { lr: 0.02, betas: [0.8, 0.95], amsgrad: true }),
  AdamW: (p) => new o.AdamW(p, { lr: 0.02, weightDecay: 0.1 }),
  RMSprop: (p) => new o.RMSprop(p, { lr: 0.01 }),
  'RMSprop centered': (p) =>
    new o.RMSprop(p, { lr: 0.005, alpha: 0.9, momentum: 0.5, centered: true, weightDecay: 0.01 }),
  Lion: (p) => new o.Lion(p, { lr: 0.01, betas: [0.9, 0.99], weightDecay: 0.1 }),
};

/**
 * Returns the parameters after 1, 10 and 100 steps. Element i of parameter n has the gradient
 * p + sin(0.3 step + i + n).
 */
export function stepsOf(make: Make): number[][] {
  const params = [wave([7], 1), wave([2, 3], 2)];
  const optimizer = make(params);
  const seen: number[][] = [];
  for (let step = 0; step < 100; step++) {
    scope(() => {
      optimizer.zeroGrad();
      for (const [n, p] of params.entries()) {
        const push = Array.from({ length: p.count }, (_, i) => Math.sin(step * 0.3 + i + n));
        p.square()
          .sum()
          .mul(0.5)
          .add(p.flatten().mul(tensor(push)).sum())
          .backward();
      }
      optimizer.step();
    });
    if ([0, 9, 99].includes(step)) seen.push(params.flatMap((p) => [...(p.dataSync() as Float32Array)]));
  }
  return seen;
}

function rates(make: (optimizer: o.SGD) => o.Schedule): () => number[] {
  return () => {
    const schedule = make(new o.SGD([wave([1], 0)], { lr: 0.4, momentum: 0.9 }));
    return Array.from({ length: 24 }, () => {
      const [lr] = schedule.lastLr;
      schedule.step();
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
  'OneCycleLR in three phases': rates(
    (sgd) =>
      new o.OneCycleLR(sgd, {
        ...{ maxLr: 1, totalSteps: 24, pctStart: 0.4, threePhase: true, annealStrategy: 'linear' },
      }),
  ),
  SequentialLR: rates((sgd) => {
    const warmup = new o.LinearLR(sgd, { startFactor: 0.1, totalSteps: 4 });
    const schedules = [warmup, new o.CosineAnnealingLR(sgd, { tMax: 20 })];
    return new o.SequentialLR(sgd, { schedules, milestones: [4] });
  }),
};
