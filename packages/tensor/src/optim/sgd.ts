// Stochastic gradient descent, with the numbers of torch.optim.SGD.
import { badOption } from '../errors.ts';
import type { SgdRule } from '../kernels.ts';
import { KernelOptimizer } from './kernel-optimizer.ts';
import { type AllOptions, checkedOption, type OptimizerParams } from './optimizer.ts';

export interface SGDOptions {
  readonly lr: number;
  /** Default 0. */
  readonly momentum?: number;
  /** Default 0. */
  readonly dampening?: number;
  /** L2 penalty. Default 0. */
  readonly weightDecay?: number;
  /** Default false. Needs momentum and no dampening. */
  readonly nesterov?: boolean;
  /** Default false. */
  readonly maximize?: boolean;
}

type Options = AllOptions<SGDOptions>;
const defaults = { lr: 1e-3, momentum: 0, dampening: 0, weightDecay: 0, nesterov: false, maximize: false };

export class SGD extends KernelOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: SGDOptions) {
    super(params, defaults, options);
  }

  protected check({ lr, momentum, dampening, weightDecay, nesterov }: Options): void {
    checkedOption('lr', lr);
    checkedOption('momentum', momentum);
    checkedOption('weightDecay', weightDecay);
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
