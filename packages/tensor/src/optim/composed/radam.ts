// RAdam (Liu et al., 2020), with the numbers of torch.optim.RAdam.
import { flag, nonNegative } from '../../checks/value-checks.ts';
import { twoRates } from '../adam.ts';
import { type AllOptions, checkAll, type OptimizerParams } from '../optimizer.ts';
import {
  ComposedOptimizer,
  lerp_,
  meanSquare_,
  type ParamStep,
  shrink_,
  withPenalty,
} from './composed-optimizer.ts';

/** Options of RAdam. */
export interface RAdamOptions {
  /** Default 1e-3. */
  readonly lr?: number;
  /** Decay rates of the running means of the gradient and of its square. Default [0.9, 0.999]. */
  readonly betas?: readonly [number, number];
  /** Added to the denominator, the square root of the running mean of squared gradients. Default 1e-8. */
  readonly eps?: number;
  /** Default 0. */
  readonly weightDecay?: number;
  /** Whether weightDecay shrinks the parameters, as in AdamW, and is not added to the gradient. Default false. */
  readonly decoupledWeightDecay?: boolean;
  /** Whether to step along the gradient instead of against it. Default false. */
  readonly maximize?: boolean;
}

type Options = AllOptions<RAdamOptions>;
const defaults: Options = {
  ...{ lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0 },
  ...{ decoupledWeightDecay: false, maximize: false },
};
const checks = {
  ...{ lr: nonNegative, betas: twoRates, eps: nonNegative, weightDecay: nonNegative },
  ...{ decoupledWeightDecay: flag, maximize: flag },
};

/**
 * The optimiser RAdam (Liu et al., 2020): steps by the mean gradient alone until the mean of squares has seen enough
 * gradients, then as Adam, with a factor that corrects the variance of the early steps.
 */
export class RAdam extends ComposedOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: RAdamOptions = {}) {
    super(params, defaults, options);
  }

  protected check(options: Options): void {
    checkAll(options, checks);
  }

  protected remembers(): readonly string[] {
    return ['expAvg', 'expAvgSq'];
  }

  protected update(step: ParamStep, options: Options): void {
    const { lr, betas, eps, weightDecay, decoupledWeightDecay } = options;
    if (decoupledWeightDecay) shrink_(step, lr, weightDecay);
    const { param, grad, steps, state } = withPenalty(step, decoupledWeightDecay ? 0 : weightDecay);
    const [beta1, beta2] = betas;
    const expAvg = state('expAvg');
    const expAvgSq = state('expAvgSq');
    lerp_(expAvg, grad, 1 - beta1);
    meanSquare_(expAvgSq, grad, beta2);

    const correction2 = 1 - beta2 ** steps;
    const most = 2 / (1 - beta2) - 1;
    // The length of a plain mean over as many gradients as the weighted mean of squares has effectively seen.
    const length = most - (2 * steps * beta2 ** steps) / correction2;
    const mean = expAvg.div(1 - beta1 ** steps).mul(lr);
    if (length <= 5) {
      param.sub_(mean);
      return;
    }
    const factor = Math.sqrt(((length - 4) * (length - 2) * most) / ((most - 4) * (most - 2) * length));
    param.sub_(mean.div(expAvgSq.sqrt().add(eps)).mul(Math.sqrt(correction2) * factor));
  }
}
