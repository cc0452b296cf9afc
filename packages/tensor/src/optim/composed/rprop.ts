// Rprop (Riedmiller and Braun, 1993), with the numbers of torch.optim.Rprop.
import { type Check, finite, flag, nonNegative } from '../../checks/value-checks.ts';
import { onesLike } from '../../core/creation.ts';
import { type AllOptions, checkAll, type OptimizerParams } from '../optimizer.ts';
import { ComposedOptimizer, type ParamStep } from './composed-optimizer.ts';

/** Options of Rprop. */
export interface RpropOptions {
  /** The size of the first step of every element. Default 0.01. */
  readonly lr?: number;
  /** Factors of the step size of an element whose gradient changed its sign, or kept it. Default [0.5, 1.2]. */
  readonly etas?: readonly [number, number];
  /** The minimum and the maximum step size. Default [1e-6, 50]. */
  readonly stepSizes?: readonly [number, number];
  /** Whether to step along the gradient instead of against it. Default false. */
  readonly maximize?: boolean;
}

type Options = AllOptions<RpropOptions>;
const defaults: Options = { lr: 0.01, etas: [0.5, 1.2], stepSizes: [1e-6, 50], maximize: false };

const isPair = (value: unknown): value is [number, number] =>
  Array.isArray(value) && value.length === 2 && value.every(finite.fits);
const etasCheck: Check = {
  expected: 'two numbers, the first > 0 and < 1, the second > 1',
  fits: (value) => isPair(value) && value[0] > 0 && value[0] < 1 && value[1] > 1,
};
const stepSizesCheck: Check = { expected: 'two numbers', fits: isPair };
const checks = { lr: nonNegative, etas: etasCheck, stepSizes: stepSizesCheck, maximize: flag };

/**
 * The optimiser Rprop (Riedmiller and Braun, 1993): every element has its own step size, and only the sign of its
 * gradient counts. For gradients of the whole data set, not of batches.
 */
export class Rprop extends ComposedOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: RpropOptions = {}) {
    super(params, defaults, options);
  }

  protected check(options: Options): void {
    checkAll(options, checks);
  }

  protected remembers(): readonly string[] {
    return ['prev', 'stepSize'];
  }

  protected update({ param, grad, steps, state }: ParamStep, { lr, etas, stepSizes }: Options): void {
    const prev = state('prev');
    const stepSize = state('stepSize');
    if (steps === 1) stepSize.fill_(lr);
    const agreement = grad.mul(prev);
    const hasTurned = agreement.lt(0);
    const factor = onesLike(grad).maskedFill(agreement.gt(0), etas[1]).maskedFill(hasTurned, etas[0]);
    stepSize.copy_(stepSize.mul(factor).clamp(...stepSizes));
    // An element whose gradient changed its sign does not move in this step, and starts anew in the next.
    prev.copy_(grad.maskedFill(hasTurned, 0));
    param.sub_(prev.sign().mul(stepSize));
  }
}
