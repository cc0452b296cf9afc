// Adam and AdamW. Defaults and order of arithmetic are those of torch.optim.
import type { AdamRule } from '../backends/kernels.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import { type Check, decayRate, flag, nonNegative } from '../checks/value-checks.ts';
import { KernelOptimizer } from './kernel-optimizer.ts';
import { type AllOptions, checkAll, type OptimizerParams } from './optimizer.ts';

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
}

type Options = AllOptions<AdamOptions>;
const defaults: Options = {
  lr: 1e-3,
  betas: [0.9, 0.999],
  eps: 1e-8,
  weightDecay: 0,
  amsgrad: false,
  maximize: false,
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
const adamOptions = optionChecks<AdamOptions>(checks);

/** Adam, with weight decay added to the gradient. */
export class Adam extends KernelOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: AdamOptions = {}) {
    super(params, defaults, options);
  }

  protected check(options: Options): void {
    checkAll(options, checks);
  }

  protected states({ amsgrad }: Options): readonly (string | null)[] {
    return ['expAvg', 'expAvgSq', amsgrad ? 'maxExpAvgSq' : null];
  }

  protected rule({ lr, betas, eps, weightDecay, maximize }: Options): AdamRule {
    return { kind: 'adam', lr, betas, epsilon: eps, weightDecay, maximize, isDecoupled: false };
  }
}

/** Checks the options, and sets weightDecay to 0.01 if it is left out. */
function withAdamWDefaults(options: AdamOptions): AdamOptions {
  checkOptions('AdamW', options, adamOptions);
  return { ...options, weightDecay: options.weightDecay ?? 0.01 };
}

/**
 * Adam with decoupled weight decay: each step first multiplies the parameters by 1 − lr × weightDecay. weightDecay
 * defaults to 0.01.
 */
export class AdamW extends Adam {
  constructor(params: OptimizerParams<Options>, options: AdamOptions = {}) {
    super(params, withAdamWDefaults(options));
  }

  protected override rule(options: Options): AdamRule {
    return { ...super.rule(options), isDecoupled: true };
  }
}
