// RMSprop, with the numbers of torch.optim.RMSprop.
import type { RmspropRule } from '../kernels.ts';
import { KernelOptimizer } from './kernel-optimizer.ts';
import { type AllOptions, checkedOption, checkedShare, type OptimizerParams } from './optimizer.ts';

export interface RMSpropOptions {
  /** Default 0.01. */
  readonly lr?: number;
  /** How much of the mean square stays in each step. Default 0.99. */
  readonly alpha?: number;
  /** Default 1e-8. */
  readonly eps?: number;
  /** Default 0. */
  readonly weightDecay?: number;
  /** Default 0. */
  readonly momentum?: number;
  /** Divides by the standard deviation of the gradient. Default false. */
  readonly centered?: boolean;
  /** Default false. */
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

export class RMSprop extends KernelOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: RMSpropOptions = {}) {
    super(params, defaults, options);
  }

  protected check({ lr, alpha, eps, weightDecay, momentum }: Options): void {
    checkedOption('lr', lr);
    checkedShare('alpha', alpha);
    checkedOption('eps', eps);
    checkedOption('weightDecay', weightDecay);
    checkedOption('momentum', momentum);
  }

  protected states({ momentum, centered }: Options): readonly (string | null)[] {
    return ['squareAvg', momentum === 0 ? null : 'momentumBuffer', centered ? 'gradAvg' : null];
  }

  protected rule({ lr, alpha, eps, weightDecay, momentum, centered, maximize }: Options): RmspropRule {
    return { kind: 'rmsprop', lr, alpha, epsilon: eps, weightDecay, momentum, centered, maximize };
  }
}
