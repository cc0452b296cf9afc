// Muon (Jordan et al., 2024), with the numbers of torch.optim.Muon.
import { type Check, finite, flag, nonNegative, oneOf } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption } from '../../errors.ts';
import { type AllOptions, checkAll, type OptimizerParams } from '../optimizer.ts';
import { ComposedOptimizer, lerp_, type ParamStep } from './composed-optimizer.ts';

/** Options of Muon. */
export interface MuonOptions {
  /** Default 1e-3. */
  readonly lr?: number;
  /** Each step first multiplies the parameters by 1 − lr × weightDecay. Default 0.1. */
  readonly weightDecay?: number;
  /** Weight of the old mean gradient in each step. Default 0.95. */
  readonly momentum?: number;
  /** Whether to step by a mixture of gradient and mean, with the weight `momentum`. Default true. */
  readonly nesterov?: boolean;
  /** The coefficients of x, x³ and x⁵ in each iteration. Default [3.4445, −4.775, 2.0315]. */
  readonly nsCoefficients?: readonly [number, number, number];
  /** Minimum norm by which it divides before it iterates. Default 1e-7. */
  readonly eps?: number;
  /** Number of iterations, below 100. Default 5. */
  readonly nsSteps?: number;
  /**
   * How the rate depends on the shape [a, b]: 'original' multiplies it by √max(1, a ÷ b), 'match_rms_adamw' by
   * 0.2 √max(a, b), with which rates for AdamW fit. Default null, which is 'original'.
   */
  readonly adjustLrFn?: 'original' | 'match_rms_adamw' | null;
}

type Options = AllOptions<MuonOptions>;
const defaults: Options = {
  ...{ lr: 1e-3, weightDecay: 0.1, momentum: 0.95, nesterov: true, eps: 1e-7, nsSteps: 5, adjustLrFn: null },
  nsCoefficients: [3.4445, -4.775, 2.0315],
};

const named = oneOf('original', 'match_rms_adamw');
const checks = {
  ...{ lr: nonNegative, weightDecay: nonNegative, momentum: nonNegative, nesterov: flag, eps: nonNegative },
  nsCoefficients: {
    expected: 'three numbers',
    fits: (value: unknown) => Array.isArray(value) && value.length === 3 && value.every(finite.fits),
  } satisfies Check,
  nsSteps: {
    expected: 'an integer from 0 to 99',
    fits: (value: unknown) => Number.isInteger(value) && (value as number) >= 0 && (value as number) < 100,
  } satisfies Check,
  adjustLrFn: {
    expected: `${named.expected}, or null`,
    fits: (value: unknown) => value === null || named.fits(value),
  } satisfies Check,
};

/** Rounds to bfloat16. Products and sums are computed in float32, and each operation of PyTorch rounds its result. */
const rounded = (values: Tensor): Tensor => values.to('bfloat16').to('float32');

/** Returns the factor of the rate for a parameter of this shape. */
const factorOf = (name: Options['adjustLrFn'], [rows, cols]: readonly number[]): number =>
  name === 'match_rms_adamw'
    ? 0.2 * Math.sqrt(Math.max(rows!, cols!))
    : Math.sqrt(Math.max(1, rows! / cols!));

/**
 * Returns a matrix with the singular vectors of `values` whose singular values are near 1 (Newton-Schulz iteration).
 */
function orthogonalized(values: Tensor, { nsCoefficients: [a, b, c], nsSteps, eps }: Options): Tensor {
  const isTall = values.shape[0]! > values.shape[1]!;
  const start = rounded(isTall ? values.t() : values);
  let x = rounded(start.div(rounded(start.norm()).clamp(eps)));
  for (let i = 0; i < nsSteps; i++) {
    const gram = rounded(x.matmul(x.t()));
    const mixed = rounded(gram.mul(b).add(gram.matmul(gram).mul(c)));
    x = rounded(x.mul(a).add(mixed.matmul(x)));
  }
  return isTall ? x.t() : x;
}

/**
 * The optimiser Muon (Jordan et al., 2024), for the matrices inside a network: steps by the mean gradient with all
 * its singular values made about 1, which it computes in bfloat16. Refuses parameters that are no matrices; give
 * those, and embeddings, to AdamW.
 */
export class Muon extends ComposedOptimizer<Options> {
  constructor(params: OptimizerParams<Options>, options: MuonOptions = {}) {
    super(params, defaults, options);
  }

  protected check(options: Options): void {
    checkAll(options, checks);
  }

  protected override checkParam({ rank, shape }: Tensor): void {
    if (rank !== 2) throw badOption('Muon: params', 'matrices', `a parameter of shape [${shape.join(', ')}]`);
  }

  protected remembers(): readonly string[] {
    return ['momentumBuffer'];
  }

  protected update({ param, grad, state }: ParamStep, options: Options): void {
    const { lr, weightDecay, momentum, nesterov, adjustLrFn } = options;
    const mean = state('momentumBuffer');
    lerp_(mean, grad, 1 - momentum);
    const mixed = grad.clone();
    if (nesterov) lerp_(mixed, mean, momentum);
    const update = orthogonalized(nesterov ? mixed : mean, options);
    param.mul_(1 - lr * weightDecay);
    param.sub_(update.to(param.dtype).mul(lr * factorOf(adjustLrFn, param.shape)));
  }
}
