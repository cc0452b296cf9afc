// Adafactor (Shazeer and Stern, 2018), with the numbers of torch.optim.Adafactor.
import { type Check, flag, nonNegative } from '../../checks/value-checks.ts';
import type { Shape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { type AllOptions, checkAll, type OptimizerParams } from '../optimizer.ts';
import { ComposedOptimizer, lerp_, type ParamStep, shrink_ } from './composed-optimizer.ts';

/** Options of Adafactor. */
export interface AdafactorOptions {
  /** Maximum relative size of a step; for step n at most 1 ÷ √n. Default 0.01. */
  readonly lr?: number;
  /** Step n has the weight n ^ beta2Decay in the running means of squares. At most 0. Default −0.8. */
  readonly beta2Decay?: number;
  /**
   * Minimum root of a mean square (null: the smallest difference from 1 in the parameter's dtype), and minimum root
   * mean square of a parameter. Default [null, 1e-3].
   */
  readonly eps?: readonly [number | null, number];
  /** Maximum root mean square of a step, as a multiple of its relative size; at least 1. Default 1. */
  readonly d?: number;
  /** Each step first multiplies the parameters by 1 − lr × weightDecay. Default 0. */
  readonly weightDecay?: number;
  /** Whether to step along the gradient instead of against it. Default false. */
  readonly maximize?: boolean;
}

type Options = AllOptions<AdafactorOptions>;
const defaults: Options = {
  ...{ lr: 0.01, beta2Decay: -0.8, eps: [null, 1e-3], d: 1, weightDecay: 0, maximize: false },
};

const isNumber = (value: unknown): value is number => Number.isFinite(value);
const decayCheck: Check = { expected: 'a number ≤ 0', fits: (value) => isNumber(value) && value <= 0 };
const epsCheck: Check = {
  expected: 'two numbers ≥ 0, of which the first may be null',
  fits: (value) =>
    Array.isArray(value) &&
    value.length === 2 &&
    (value[0] === null || nonNegative.fits(value[0])) &&
    nonNegative.fits(value[1]),
};
const clippingCheck: Check = { expected: 'a number ≥ 1', fits: (value) => isNumber(value) && value >= 1 };
const checks = {
  ...{ lr: nonNegative, beta2Decay: decayCheck, eps: epsCheck, d: clippingCheck },
  ...{ weightDecay: nonNegative, maximize: flag },
};

const rootMeanSquare = (values: Tensor): number => values.norm().item() / Math.sqrt(values.count);

/**
 * The optimiser Adafactor (Shazeer and Stern, 2018): for a matrix it keeps only one mean square per row and per column,
 * and the size of its steps is relative to the size of the parameter. Waits for two numbers of each parameter.
 */
export class Adafactor extends ComposedOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: AdafactorOptions = {}) {
    super(params, defaults, options);
  }

  protected check(options: Options): void {
    checkAll(options, checks);
  }

  protected remembers(_: Options, param: Tensor): readonly string[] {
    return param.rank > 1 ? ['rowVar', 'colVar'] : ['variance'];
  }

  protected override stateShape(name: string, { shape, rank }: Tensor): Shape {
    const averaged = { rowVar: rank - 1, colVar: rank - 2 }[name];
    return shape.map((size, dim) => (dim === averaged ? 1 : size));
  }

  protected update(step: ParamStep, { lr, beta2Decay, eps, d, weightDecay }: Options): void {
    const { param, grad, steps } = step;
    const least = eps[0] ?? (param.dtype === 'float64' ? 2 ** -52 : 2 ** -23);
    const size = Math.max(eps[1], rootMeanSquare(param)) * Math.min(lr, 1 / Math.sqrt(steps));
    shrink_(step, lr, weightDecay);
    const estimate = this.#meanSquares(step, steps ** beta2Decay, least);
    const update = estimate
      .clamp(least * least)
      .rsqrt()
      .mul(grad);
    param.sub_(update.mul(size / Math.max(1, rootMeanSquare(update) / d)));
  }

  /** Advances the running means. Returns the estimated mean square of each element. */
  #meanSquares({ grad, state }: ParamStep, weight: number, least: number): Tensor {
    const square = grad.square();
    if (grad.rank < 2) {
      const variance = state('variance');
      lerp_(variance, square, weight);
      return variance;
    }
    const rows = state('rowVar');
    const cols = state('colVar');
    lerp_(rows, square.mean(-1, true), weight);
    lerp_(cols, square.mean(-2, true), weight);
    return rows.mul(cols).div(rows.mean(-2, true).clamp(least));
  }
}
