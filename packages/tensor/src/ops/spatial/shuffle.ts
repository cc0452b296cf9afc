// Moves elements between channels and positions.

import { atLeastOne, checkValue } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import type { Tensor } from '../../core/tensor.ts';
import { clone, requireTensor } from '../elementwise/convert.ts';
import { permute, reshape, transpose } from '../shape/views.ts';
import { badChannelCount, badUnshuffle } from './errors.ts';

/** Returns `a` permuted, in new dense memory, as `shape`. */
const rearranged = (a: Tensor, order: readonly number[], shape: readonly number[]): Tensor =>
  reshape(clone(permute(a, order)), shape);

/** Turns [..., channels · factor², height, width] into [..., channels, height · factor, width · factor]. */
export function pixelShuffle(x: Tensor, factor: number): Tensor {
  requireTensor('pixelShuffle', x);
  checkValue('pixelShuffle: factor', factor, atLeastOne);
  const [channels = 0, height = 0, width = 0] = x.shape.slice(-3);
  if (x.rank < 3 || channels % factor ** 2 !== 0) throw badChannelCount('pixelShuffle', x.shape, factor ** 2);
  const front = x.shape.slice(0, -3);
  const outs = channels / factor ** 2;
  const n = front.length;
  const order = [...front.keys(), n, n + 3, n + 1, n + 4, n + 2];
  const shape = [...front, outs, height * factor, width * factor];
  return scope(() => rearranged(reshape(x, [...front, outs, factor, factor, height, width]), order, shape));
}

/** Turns [..., channels, height · factor, width · factor] into [..., channels · factor², height, width]. */
export function pixelUnshuffle(x: Tensor, factor: number): Tensor {
  requireTensor('pixelUnshuffle', x);
  checkValue('pixelUnshuffle: factor', factor, atLeastOne);
  const [channels = 0, high = 0, wide = 0] = x.shape.slice(-3);
  if (x.rank < 3 || high % factor !== 0 || wide % factor !== 0) throw badUnshuffle(x.shape, factor);
  const front = x.shape.slice(0, -3);
  const [height, width] = [high / factor, wide / factor];
  const n = front.length;
  const order = [...front.keys(), n, n + 2, n + 4, n + 1, n + 3];
  const shape = [...front, channels * factor ** 2, height, width];
  return scope(() =>
    rearranged(reshape(x, [...front, channels, height, factor, width, factor]), order, shape),
  );
}

/** Reorders the channels of x [batch, channels, …]: the first of each of `groups` groups, then the second ones … */
export function channelShuffle(x: Tensor, groups: number): Tensor {
  requireTensor('channelShuffle', x);
  checkValue('channelShuffle: groups', groups, atLeastOne);
  const [batch = 0, channels = 0, ...rest] = x.shape;
  if (x.rank < 3 || channels % groups !== 0) throw badChannelCount('channelShuffle', x.shape, groups);
  return scope(() => {
    const apart = reshape(x, [batch, groups, channels / groups, ...rest]);
    return reshape(clone(transpose(apart, 1, 2)), x.shape);
  });
}
