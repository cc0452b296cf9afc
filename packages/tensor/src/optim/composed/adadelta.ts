// Adadelta (Zeiler, 2012), with the numbers of torch.optim.Adadelta.
import { flag, nonNegative, share } from '../../checks/value-checks.ts';
import { type AllOptions, checkAll, type OptimizerParams } from '../optimizer.ts';
import { ComposedOptimizer, meanSquare_, type ParamStep, withPenalty } from './composed-optimizer.ts';

/** Options of Adadelta. */
export interface AdadeltaOptions {
  /** Default 1. */
  readonly lr?: number;
  /** Weight of the old mean square in each step. Default 0.9. */
  readonly rho?: number;
  /** Added to both mean squares before the square roots. Default 1e-6. */
  readonly eps?: number;
  /** Weight of an L2 penalty, which is added to the gradient. Default 0. */
  readonly weightDecay?: number;
  /** Whether to step along the gradient instead of against it. Default false. */
  readonly maximize?: boolean;
}

type Options = AllOptions<AdadeltaOptions>;
const defaults: Options = { lr: 1, rho: 0.9, eps: 1e-6, weightDecay: 0, maximize: false };
const checks = { lr: nonNegative, rho: share, eps: nonNegative, weightDecay: nonNegative, maximize: flag };

/** The optimiser Adadelta (Zeiler, 2012): scales the gradient by the size of earlier steps. */
export class Adadelta extends ComposedOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: AdadeltaOptions = {}) {
    super(params, defaults, options);
  }

  protected check(options: Options): void {
    checkAll(options, checks);
  }

  protected remembers(): readonly string[] {
    return ['squareAvg', 'accDelta'];
  }

  protected update(step: ParamStep, { lr, rho, eps, weightDecay }: Options): void {
    const { param, grad, state } = withPenalty(step, weightDecay);
    const squareAvg = state('squareAvg');
    const accDelta = state('accDelta');
    meanSquare_(squareAvg, grad, rho);
    const delta = accDelta.add(eps).sqrt().div(squareAvg.add(eps).sqrt()).mul(grad);
    meanSquare_(accDelta, delta, rho);
    param.sub_(delta.mul(lr));
  }
}
