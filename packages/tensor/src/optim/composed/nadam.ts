// NAdam (Dozat, 2016), with the numbers of torch.optim.NAdam.

import { flag, nonNegative } from '../../checks/value-checks.ts';
import type { Shape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { twoRates } from '../adam.ts';
import { type AllOptions, checkAll, type OptimizerParams } from '../optimizer.ts';
import {
  ComposedOptimizer,
  lerp_,
  meanSquare_,
  type ParamStep,
  shapeUnless,
  shrink_,
  withPenalty,
} from './composed-optimizer.ts';

/** Options of NAdam. */
export interface NAdamOptions {
  /** Default 2e-3. */
  readonly lr?: number;
  /** Decay rates of the running means of the gradient and of its square. Default [0.9, 0.999]. */
  readonly betas?: readonly [number, number];
  /** Added to the denominator, the square root of the running mean of squared gradients. Default 1e-8. */
  readonly eps?: number;
  /** Default 0. */
  readonly weightDecay?: number;
  /** ψ in the momentum of step n, which is beta × (1 − ½ × 0.96^(n × ψ)) for the first beta. Default 4e-3. */
  readonly momentumDecay?: number;
  /** Whether weightDecay shrinks the parameters, as in AdamW, and is not added to the gradient. Default false. */
  readonly decoupledWeightDecay?: boolean;
  /** Whether to step along the gradient instead of against it. Default false. */
  readonly maximize?: boolean;
}

type Options = AllOptions<NAdamOptions>;
const defaults: Options = {
  ...{ lr: 2e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0, momentumDecay: 4e-3 },
  ...{ decoupledWeightDecay: false, maximize: false },
};
const checks = {
  ...{ lr: nonNegative, betas: twoRates, eps: nonNegative, weightDecay: nonNegative },
  ...{ momentumDecay: nonNegative, decoupledWeightDecay: flag, maximize: flag },
};

/** The optimiser NAdam (Dozat, 2016): Adam with Nesterov momentum. */
export class NAdam extends ComposedOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: NAdamOptions = {}) {
    super(params, defaults, options);
  }

  protected check(options: Options): void {
    checkAll(options, checks);
  }

  protected remembers(): readonly string[] {
    return ['expAvg', 'expAvgSq', 'muProduct'];
  }

  protected override stateShape(name: string, param: Tensor): Shape | null {
    return shapeUnless(name === 'muProduct', param);
  }

  protected update(step: ParamStep, options: Options): void {
    const { lr, betas, eps, weightDecay, momentumDecay, decoupledWeightDecay } = options;
    if (decoupledWeightDecay) shrink_(step, lr, weightDecay);
    const { param, grad, steps, state } = withPenalty(step, decoupledWeightDecay ? 0 : weightDecay);
    const [beta1, beta2] = betas;
    const momentumAt = (at: number): number => beta1 * (1 - 0.5 * 0.96 ** (at * momentumDecay));
    const mu = momentumAt(steps);
    const next = momentumAt(steps + 1);
    const product = (steps === 1 ? 1 : state('muProduct').item()) * mu;
    state('muProduct').fill_(product);

    const expAvg = state('expAvg');
    const expAvgSq = state('expAvgSq');
    lerp_(expAvg, grad, 1 - beta1);
    meanSquare_(expAvgSq, grad, beta2);
    const root = expAvgSq
      .div(1 - beta2 ** steps)
      .sqrt()
      .add(eps);
    param.sub_(grad.div(root).mul((lr * (1 - mu)) / (1 - product)));
    param.sub_(expAvg.div(root).mul((lr * next) / (1 - product * next)));
  }
}
