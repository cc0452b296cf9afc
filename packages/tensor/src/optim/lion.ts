// Lion (Chen et al. 2023): every weight moves by lr, in the direction of the sign of a weighted sum of
// gradient and mean. Needs half of Adam's memory. The authors use a third to a tenth of Adam's learning rate,
// and a weight decay that is larger by the same factor.
import type { LionRule } from '../backends/kernels.ts';
import { flag, nonNegative } from '../checks/value-checks.ts';
import { twoRates } from './adam.ts';
import { KernelOptimizer } from './kernel-optimizer.ts';
import { type AllOptions, checkAll, type OptimizerParams } from './optimizer.ts';

/** Options of Lion. */
export interface LionOptions {
  /** Default 1e-4. */
  readonly lr?: number;
  /** Weight of the mean in the direction, and weight of the old mean in each step. Default [0.9, 0.99]. */
  readonly betas?: readonly [number, number];
  /** Weights shrink by lr × weightDecay in each step. Default 0. */
  readonly weightDecay?: number;
  /** Whether to step along the gradient instead of against it. Default false. */
  readonly maximize?: boolean;
}

type Options = AllOptions<LionOptions>;
const defaults: Options = { lr: 1e-4, betas: [0.9, 0.99], weightDecay: 0, maximize: false };

/** The optimiser Lion (Chen et al., 2023): steps by the sign of an averaged gradient. */
export class Lion extends KernelOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: LionOptions = {}) {
    super(params, defaults, options);
  }

  protected check(options: Options): void {
    checkAll(options, { lr: nonNegative, betas: twoRates, weightDecay: nonNegative, maximize: flag });
  }

  protected states(): readonly (string | null)[] {
    return ['expAvg'];
  }

  protected rule({ lr, betas, weightDecay, maximize }: Options): LionRule {
    return { kind: 'lion', lr, betas, weightDecay, maximize };
  }
}
