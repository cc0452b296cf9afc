// Adagrad (Duchi et al., 2011), with the numbers of torch.optim.Adagrad.
import { flag, nonNegative } from '../../checks/value-checks.ts';
import { type AllOptions, checkAll, type OptimizerParams } from '../optimizer.ts';
import { ComposedOptimizer, type ParamStep, withPenalty } from './composed-optimizer.ts';

/** Options of Adagrad. */
export interface AdagradOptions {
  /** Default 0.01. */
  readonly lr?: number;
  /** Step n uses the rate lr ÷ (1 + (n − 1) × lrDecay). Default 0. */
  readonly lrDecay?: number;
  /** Weight of an L2 penalty, which is added to the gradient. Default 0. */
  readonly weightDecay?: number;
  /** Where the sum of squared gradients starts. Default 0. */
  readonly initialAccumulatorValue?: number;
  /** Added to the root by which it divides. Default 1e-10. */
  readonly eps?: number;
  /** Whether to step along the gradient instead of against it. Default false. */
  readonly maximize?: boolean;
}

type Options = AllOptions<AdagradOptions>;
const defaults: Options = {
  ...{ lr: 0.01, lrDecay: 0, weightDecay: 0, initialAccumulatorValue: 0, eps: 1e-10, maximize: false },
};
const checks = {
  ...{ lr: nonNegative, lrDecay: nonNegative, weightDecay: nonNegative, eps: nonNegative },
  ...{ initialAccumulatorValue: nonNegative, maximize: flag },
};

/** The optimiser Adagrad (Duchi et al., 2011): divides the gradient by the root of the sum of all squares so far. */
export class Adagrad extends ComposedOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: AdagradOptions = {}) {
    super(params, defaults, options);
  }

  protected check(options: Options): void {
    checkAll(options, checks);
  }

  protected remembers(): readonly string[] {
    return ['sum'];
  }

  protected update(step: ParamStep, options: Options): void {
    const { lr, lrDecay, weightDecay, initialAccumulatorValue, eps } = options;
    const { param, grad, steps, state } = withPenalty(step, weightDecay);
    const sum = state('sum');
    if (steps === 1) sum.fill_(initialAccumulatorValue);
    sum.add_(grad.square());
    param.sub_(grad.div(sum.sqrt().add(eps)).mul(lr / (1 + (steps - 1) * lrDecay)));
  }
}
