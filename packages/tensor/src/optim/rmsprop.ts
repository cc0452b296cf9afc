// RMSprop, with the numbers of torch.optim.RMSprop.
import type { RmspropRule } from '../backends/kernels.ts';
import { decayRate, flag, nonNegative } from '../checks/value-checks.ts';
import { KernelOptimizer } from './kernel-optimizer.ts';
import { type AllOptions, checkAll, type OptimizerParams } from './optimizer.ts';

/** Options of RMSprop. */
export interface RMSpropOptions {
  /** Default 0.01. */
  readonly lr?: number;
  /** Weight of the old mean square in each step. Default 0.99. */
  readonly alpha?: number;
  /** Added to the root by which it divides. Default 1e-8. */
  readonly eps?: number;
  /** Default 0. */
  readonly weightDecay?: number;
  /** Default 0. */
  readonly momentum?: number;
  /** Whether to divide by the standard deviation of the gradient. Default false. */
  readonly centered?: boolean;
  /** Whether to step along the gradient instead of against it. Default false. */
  readonly maximize?: boolean;
}

type Options = AllOptions<RMSpropOptions>;
const defaults: Options = {
  lr: 0.01,
  alpha: 0.99,
  eps: 1e-8,
  weightDecay: 0,
  momentum: 0,
  centered: false,
  maximize: false,
};

const checks = {
  ...{ lr: nonNegative, alpha: decayRate, eps: nonNegative, weightDecay: nonNegative, momentum: nonNegative },
  ...{ centered: flag, maximize: flag },
};

/** The optimiser RMSprop (Tieleman and Hinton, 2012), with PyTorch's options and numbers. */
export class RMSprop extends KernelOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: RMSpropOptions = {}) {
    super(params, defaults, options);
  }

  protected check(options: Options): void {
    checkAll(options, checks);
  }

  protected states({ momentum, centered }: Options): readonly (string | null)[] {
    return ['squareAvg', momentum === 0 ? null : 'momentumBuffer', centered ? 'gradAvg' : null];
  }

  protected rule({ lr, alpha, eps, weightDecay, momentum, centered, maximize }: Options): RmspropRule {
    return { kind: 'rmsprop', lr, alpha, epsilon: eps, weightDecay, momentum, centered, maximize };
  }
}
