// Averaged stochastic gradient descent (Polyak and Juditsky, 1992), with the numbers of torch.optim.ASGD.

import { finite, flag, nonNegative } from '../../checks/value-checks.ts';
import type { Shape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { type AllOptions, checkAll, type OptimizerParams } from '../optimizer.ts';
import { ComposedOptimizer, type ParamStep, shapeUnless, withPenalty } from './composed-optimizer.ts';

/** Options of ASGD. */
export interface ASGDOptions {
  /** Default 0.01. */
  readonly lr?: number;
  /** Weights shrink by this × the rate in each step; the rate falls with it, too. Default 1e-4. */
  readonly lambd?: number;
  /** After step n the rate is lr ÷ (1 + lambd × lr × n) ^ alpha. Default 0.75. */
  readonly alpha?: number;
  /** The step at which averaging begins. Default 1e6. */
  readonly t0?: number;
  /** Weight of an L2 penalty, which is added to the gradient. Default 0. */
  readonly weightDecay?: number;
  /** Whether to step along the gradient instead of against it. Default false. */
  readonly maximize?: boolean;
}

type Options = AllOptions<ASGDOptions>;
const defaults: Options = {
  ...{ lr: 0.01, lambd: 1e-4, alpha: 0.75, t0: 1e6, weightDecay: 0, maximize: false },
};
const checks = {
  ...{ lr: nonNegative, lambd: finite, alpha: finite, t0: finite, weightDecay: nonNegative, maximize: flag },
};

/**
 * Averaged stochastic gradient descent. The averages of the parameters are the state tensors `ax`; before step t0 they
 * are the parameters themselves.
 */
export class ASGD extends ComposedOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: ASGDOptions = {}) {
    super(params, defaults, options);
  }

  protected check(options: Options): void {
    checkAll(options, checks);
  }

  protected remembers(): readonly string[] {
    return ['ax', 'eta', 'mu'];
  }

  protected override stateShape(name: string, param: Tensor): Shape | null {
    return shapeUnless(name !== 'ax', param);
  }

  protected update(step: ParamStep, { lr, lambd, alpha, t0, weightDecay }: Options): void {
    const { param, grad, steps, state } = withPenalty(step, weightDecay);
    const eta = steps === 1 ? lr : state('eta').item();
    const mu = steps === 1 ? 1 : state('mu').item();
    param.mul_(1 - lambd * eta).sub_(grad.mul(eta));
    const ax = state('ax');
    if (mu === 1) ax.copy_(param);
    else ax.add_(param.sub(ax).mul(mu));
    state('eta').fill_(lr / (1 + lambd * lr * steps) ** alpha);
    state('mu').fill_(1 / Math.max(1, steps - t0));
  }
}
