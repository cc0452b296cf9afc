// Adamax (Kingma and Ba, 2015), with the numbers of torch.optim.Adamax.
import { flag, nonNegative } from '../../checks/value-checks.ts';
import { twoRates } from '../adam.ts';
import { type AllOptions, checkAll, type OptimizerParams } from '../optimizer.ts';
import { ComposedOptimizer, lerp_, type ParamStep, withPenalty } from './composed-optimizer.ts';

/** Options of Adamax. */
export interface AdamaxOptions {
  /** Default 2e-3. */
  readonly lr?: number;
  /** Decay rates of the running mean of the gradient and of its largest magnitude. Default [0.9, 0.999]. */
  readonly betas?: readonly [number, number];
  /** Added to the magnitude of the gradient. Default 1e-8. */
  readonly eps?: number;
  /** Weight of an L2 penalty, which is added to the gradient. Default 0. */
  readonly weightDecay?: number;
  /** Whether to step along the gradient instead of against it. Default false. */
  readonly maximize?: boolean;
}

type Options = AllOptions<AdamaxOptions>;
const defaults: Options = { lr: 2e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0, maximize: false };
const checks = {
  ...{ lr: nonNegative, betas: twoRates, eps: nonNegative, weightDecay: nonNegative, maximize: flag },
};

/** The optimiser Adamax (Kingma and Ba, 2015): Adam that divides by a decaying maximum of the gradient's magnitude. */
export class Adamax extends ComposedOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: AdamaxOptions = {}) {
    super(params, defaults, options);
  }

  protected check(options: Options): void {
    checkAll(options, checks);
  }

  protected remembers(): readonly string[] {
    return ['expAvg', 'expInf'];
  }

  protected update(step: ParamStep, { lr, betas, eps, weightDecay }: Options): void {
    const { param, grad, steps, state } = withPenalty(step, weightDecay);
    const [beta1, beta2] = betas;
    const expAvg = state('expAvg');
    const expInf = state('expInf');
    lerp_(expAvg, grad, 1 - beta1);
    expInf.copy_(expInf.mul(beta2).maximum(grad.abs().add(eps)));
    param.sub_(expAvg.div(expInf).mul(lr / (1 - beta1 ** steps)));
  }
}
