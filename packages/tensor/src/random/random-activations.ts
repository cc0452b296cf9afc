// Activations that draw random numbers.
import { checkNumber } from '../checks/arguments.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import { aGenerator, checkValue, flag, positive } from '../checks/value-checks.ts';
import { noGrad, scope } from '../core/context.ts';
import { zerosLike } from '../core/creation.ts';
import type { Tensor } from '../core/tensor.ts';
import { badOption, shown } from '../errors.ts';
import { requireFloat } from '../ops/elementwise/convert.ts';
import {
  add,
  argmax,
  clamp,
  div,
  gt,
  leakyRelu,
  log,
  mul,
  neg,
  scatter,
  softmax,
  sub,
  to,
  unsqueeze,
  where,
} from '../ops/index.ts';
import { type GeneratorOption, rand } from './random-tensors.ts';

/** Options of rrelu(). */
export interface RReluOptions extends GeneratorOption {
  /** Whether slopes are random. Default false: each is the mean of the limits. */
  readonly training?: boolean;
}

const rreluOptions = optionChecks<RReluOptions>({ generator: aGenerator, training: flag });

/** Throws unless `lower` ≤ `upper`. */
export function checkSlopes(op: string, lower: number, upper: number): void {
  checkNumber(op, 'lower', lower);
  checkNumber(op, 'upper', upper);
  if (!(lower <= upper))
    throw badOption(`${op}: upper`, `a number ≥ ${lower}, the lower limit`, shown(upper));
}

/**
 * Returns a where it is positive, else a times a slope: while training, one for each element, uniform from `lower` to
 * `upper`; else their mean. Floats only.
 */
export function rrelu(a: Tensor, lower = 1 / 8, upper = 1 / 3, options: RReluOptions = {}): Tensor {
  requireFloat('rrelu', a);
  checkSlopes('rrelu', lower, upper);
  checkOptions('rrelu', options, rreluOptions);
  const { training = false, ...random } = options;
  if (!training) return leakyRelu(a, (lower + upper) / 2);
  return scope(() => {
    const slopes = noGrad(() => {
      const shares = rand(a.shape, { device: a.device, ...random });
      return to(add(mul(shares, upper - lower), lower), a.dtype);
    });
    return where(gt(a, 0), a, mul(a, slopes));
  });
}

/** Options of gumbelSoftmax(). */
export interface GumbelSoftmaxOptions extends GeneratorOption {
  /** Divisor of the logits (temperature): the smaller, the closer the result is to one-hot. Default 1. */
  readonly tau?: number;
  /** Whether to return one-hot choices, with the gradient of the soft ones (straight-through). */
  readonly hard?: boolean;
}

const gumbelOptions = optionChecks<GumbelSoftmaxOptions>({
  generator: aGenerator,
  tau: positive,
  hard: flag,
});

/**
 * Draws from the Gumbel-softmax distribution along `dim` (Jang et al., 2017): softmax of the logits plus Gumbel noise,
 * divided by tau. Floats only.
 */
export function gumbelSoftmax(logits: Tensor, dim = -1, options: GumbelSoftmaxOptions = {}): Tensor {
  const op = 'gumbelSoftmax';
  requireFloat(op, logits);
  checkOptions(op, options, gumbelOptions);
  const { tau = 1, hard = false, ...random } = options;
  checkValue(`${op}: tau`, tau, positive);
  return scope(() => {
    const noise = noGrad(() => {
      // Not 0 and not 1, of which the noise would be infinite.
      const shares = clamp(rand(logits.shape, { device: logits.device, ...random }), 2 ** -25, 1 - 2 ** -24);
      return to(neg(log(neg(log(shares)))), logits.dtype);
    });
    const soft = softmax(div(add(logits, noise), tau), dim);
    if (!hard) return soft;
    const choice = noGrad(() => {
      if (logits.rank === 0) return soft.detach();
      return scatter(zerosLike(soft), dim, unsqueeze(argmax(soft, dim), dim), 1);
    });
    return add(sub(choice, soft.detach()), soft);
  });
}
