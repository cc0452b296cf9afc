// Adam and AdamW. Defaults and order of arithmetic are those of torch.optim.
import type { AdamRule } from '../backends/kernels.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import { type Check, decayRate, flag, nonNegative } from '../checks/value-checks.ts';
import { KernelOptimizer } from './kernel-optimizer.ts';
import { type AllOptions, checkAll, type OptimizerParams } from './optimizer.ts';
import type { SavedOptimizerState } from './state.ts';

/** Options of Adam and AdamW. */
export interface AdamOptions {
  /** Default 1e-3. */
  readonly lr?: number;
  /** Decay rates of the running means of the gradient and of its square. Default [0.9, 0.999]. */
  readonly betas?: readonly [number, number];
  /** Added to the denominator, the square root of the running mean of squared gradients. Default 1e-8. */
  readonly eps?: number;
  /** Default 0; AdamW 0.01. */
  readonly weightDecay?: number;
  /** Whether to divide by the root of the largest mean square so far. Default false. */
  readonly amsgrad?: boolean;
  /** Whether to step along the gradient instead of against it. Default false. */
  readonly maximize?: boolean;
  /** Whether to multiply the parameters by 1 − lr × weightDecay before each step, as AdamW does. Default false. */
  readonly decoupledWeightDecay?: boolean;
}

/** Options of AdamW. */
export type AdamWOptions = Omit<AdamOptions, 'decoupledWeightDecay'>;

type Options = AllOptions<AdamOptions>;
const defaults: Options = {
  lr: 1e-3,
  betas: [0.9, 0.999],
  eps: 1e-8,
  weightDecay: 0,
  amsgrad: false,
  maximize: false,
  decoupledWeightDecay: false,
};

/** Checks a pair of decay rates. */
export const twoRates: Check = {
  expected: 'two numbers ≥ 0 and < 1',
  fits: (value) => Array.isArray(value) && value.length === 2 && value.every(decayRate.fits),
};
const checks = {
  ...{ lr: nonNegative, betas: twoRates, eps: nonNegative, weightDecay: nonNegative },
  ...{ amsgrad: flag, maximize: flag },
};
const adamWOptions = optionChecks<AdamWOptions>(checks);

/** Adam, with weight decay added to the gradient, unless `decoupledWeightDecay` is set. */
export class Adam extends KernelOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: AdamOptions = {}) {
    super(params, defaults, options);
  }

  protected check(options: Options): void {
    checkAll(options, { ...checks, decoupledWeightDecay: flag });
  }

  protected states({ amsgrad }: Options): readonly (string | null)[] {
    return ['expAvg', 'expAvgSq', amsgrad ? 'maxExpAvgSq' : null];
  }

  protected rule(options: Options): AdamRule {
    const { lr, betas, eps, weightDecay, maximize, decoupledWeightDecay: isDecoupled } = options;
    return { kind: 'adam', lr, betas, epsilon: eps, weightDecay, maximize, isDecoupled };
  }
}

/** Checks the options of AdamW, and returns those of Adam. */
function withAdamWDefaults(options: AdamWOptions): AdamOptions {
  checkOptions('AdamW', options, adamWOptions);
  return { ...options, weightDecay: options.weightDecay ?? 0.01, decoupledWeightDecay: true };
}

/**
 * Adam with decoupled weight decay: each step first multiplies the parameters by 1 − lr × weightDecay. weightDecay
 * defaults to 0.01.
 */
export class AdamW extends Adam {
  constructor(params: OptimizerParams<Options>, options: AdamWOptions = {}) {
    super(params, withAdamWDefaults(options));
  }

  /** Loads a state as other optimizers do. The weight decay stays decoupled, also after a state of Adam. */
  override loadStateDict(state: SavedOptimizerState): void {
    super.loadStateDict(state);
    for (const group of this.groups) group.decoupledWeightDecay = true;
  }
}
