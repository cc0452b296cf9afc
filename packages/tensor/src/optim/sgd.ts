// Stochastic gradient descent, with the numbers of torch.optim.SGD.

import type { SgdRule } from '../backends/kernels.ts';
import { finite, flag, nonNegative } from '../checks/value-checks.ts';
import { badOption } from '../errors.ts';
import { KernelOptimizer } from './kernel-optimizer.ts';
import { type AllOptions, checkAll, type OptimizerParams } from './optimizer.ts';

/** Options of SGD. */
export interface SGDOptions {
  /** Learning rate. */
  readonly lr: number;
  /** Default 0. */
  readonly momentum?: number;
  /** Default 0. */
  readonly dampening?: number;
  /** Weight of an L2 penalty, which is added to the gradient. Default 0. */
  readonly weightDecay?: number;
  /** Default false. Needs momentum and no dampening. */
  readonly nesterov?: boolean;
  /** Whether to step along the gradient instead of against it. Default false. */
  readonly maximize?: boolean;
}

type Options = AllOptions<SGDOptions>;
const defaults = { lr: 1e-3, momentum: 0, dampening: 0, weightDecay: 0, nesterov: false, maximize: false };

const checks = {
  ...{ lr: nonNegative, momentum: nonNegative, dampening: finite, weightDecay: nonNegative },
  ...{ nesterov: flag, maximize: flag },
};

/** Stochastic gradient descent with momentum, with PyTorch's options and numbers. */
export class SGD extends KernelOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: SGDOptions) {
    super(params, defaults, options);
  }

  protected check(options: Options): void {
    checkAll(options, checks);
    const { momentum, dampening, nesterov } = options;
    if (nesterov && (momentum === 0 || dampening !== 0)) {
      throw badOption('SGD: nesterov', 'momentum > 0 and dampening 0', `${momentum} and ${dampening}`);
    }
  }

  protected states({ momentum }: Options): readonly (string | null)[] {
    return [momentum === 0 ? null : 'momentumBuffer'];
  }

  protected rule({ lr, momentum, dampening, weightDecay, nesterov, maximize }: Options): SgdRule {
    return { kind: 'sgd', lr, momentum, dampening, weightDecay, nesterov, maximize };
  }
}
