// Dropout of whole channels, and dropout that keeps mean and variance.

import { checkOptions } from '../../checks/options.ts';
import { checkValue, probability } from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import { ones } from '../../core/creation.ts';
import type { Shape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { needsRank } from '../../errors.ts';
import { add, mul } from '../elementwise/binary.ts';
import { requireFloat, requireTensor } from '../elementwise/convert.ts';
import { allDropped, type DropoutOptions, dropout, dropoutOptions } from '../elementwise/dropout.ts';

function channelDropout(
  op: string,
  ranks: readonly number[],
  unbatched: number,
  x: Tensor,
  p: number,
  options: DropoutOptions,
): Tensor {
  requireTensor(op, x);
  checkValue(`${op}: p`, p, probability);
  checkOptions(op, options, dropoutOptions);
  if (!ranks.includes(x.rank)) throw needsRank(op, ranks.join(' or '), x.shape);
  if (p === 0 || options.training === false) return x;
  if (p === 1) return allDropped(x);
  requireFloat(op, x);
  const front = x.rank === unbatched ? 1 : 2;
  return scope(() => {
    const shape = x.shape.map((size, d) => (d < front ? size : 1));
    const mask = noGrad(() => dropout(ones(shape, { dtype: x.dtype, device: x.device }), p, options));
    return mul(x, mask);
  });
}

/**
 * Makes each channel of x [batch, channels, length] or [channels, length] 0 with probability p and divides the others
 * by 1 − p. If p is 0, returns the tensor as it is.
 */
export const dropout1d = (x: Tensor, p = 0.5, options: DropoutOptions = {}): Tensor =>
  channelDropout('dropout1d', [2, 3], 2, x, p, options);

/**
 * Makes each channel of x [batch, channels, height, width] 0 with probability p and divides the others by 1 − p. As in
 * PyTorch, three dimensions are [batch, channels, length]. If p is 0, returns the tensor as it is.
 */
export const dropout2d = (x: Tensor, p = 0.5, options: DropoutOptions = {}): Tensor =>
  channelDropout('dropout2d', [3, 4], 0, x, p, options);

/**
 * Makes each channel of x [batch, channels, depth, height, width] 0 with probability p and divides the others by 1 − p.
 * The batch may be absent. If p is 0, returns the tensor as it is.
 */
export const dropout3d = (x: Tensor, p = 0.5, options: DropoutOptions = {}): Tensor =>
  channelDropout('dropout3d', [4, 5], 4, x, p, options);

/** The limit of selu() for −∞. */
const lowest = -1.7580993408473766;

/**
 * Replaces each element with probability p by the value that selu() has at −∞, and scales and shifts so that mean 0 and
 * variance 1 stay. If p is 0, returns the tensor as it is; if p is 1, all becomes 0.
 */
export const alphaDropout = (x: Tensor, p = 0.5, options: DropoutOptions = {}): Tensor =>
  loweredTo('alphaDropout', x, p, options, (shape) => shape);

/** Applies alphaDropout to x [batch, channels, …] with one choice per channel instead of one per element. */
export const featureAlphaDropout = (x: Tensor, p = 0.5, options: DropoutOptions = {}): Tensor =>
  loweredTo('featureAlphaDropout', x, p, options, (shape) => shape.map((size, d) => (d < 2 ? size : 1)));

/** Draws one choice for each element of a tensor of the shape `choices`, which is the reduced shape of x. */
function loweredTo(
  op: string,
  x: Tensor,
  p: number,
  options: DropoutOptions,
  choices: (shape: Shape) => Shape,
): Tensor {
  requireTensor(op, x);
  checkValue(`${op}: p`, p, probability);
  checkOptions(op, options, dropoutOptions);
  if (op === 'featureAlphaDropout' && x.rank < 2) throw needsRank(op, 'at least 2', x.shape);
  if (p === 0 || options.training === false) return x;
  if (p === 1) return allDropped(x);
  requireFloat(op, x);
  const scale = 1 / Math.sqrt((lowest ** 2 * p + 1) * (1 - p));
  return scope(() => {
    // 1 for elements that stay, 0 for others.
    const kept = noGrad(() =>
      mul(dropout(ones(choices(x.shape), { dtype: x.dtype, device: x.device }), p, options), 1 - p),
    );
    const shift = noGrad(() => add(mul(kept, -scale * lowest), scale * lowest - scale * lowest * p));
    return add(mul(mul(x, scale), kept), shift);
  });
}
