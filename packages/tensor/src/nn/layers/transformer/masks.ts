// Masks of PyTorch's MultiheadAttention: true hides a key, and floats are added to the scores. Note that
// scaledDotProductAttention() has it the other way round: there, true shows a key.
import { badMask, badMaskDtype } from '../../../checks/sequence-errors.ts';
import { type Shape, sameShape } from '../../../core/shape.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { requireTensor } from '../../../ops/elementwise/convert.ts';
import { add, logicalOr, reshape, where } from '../../../ops/index.ts';

/** The sizes that masks must fit. */
export interface MaskSizes {
  readonly batch: number;
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
  readonly isBatched: boolean;
}

function check(name: string, mask: Tensor, dtype: string, shapes: readonly Shape[]): void {
  requireTensor(`MultiheadAttention: ${name}`, mask);
  if (mask.dtype !== 'bool' && mask.dtype !== dtype) throw badMaskDtype(name, mask.dtype, dtype);
  if (!shapes.some((shape) => sameShape(shape, mask.shape))) throw badMask(name, mask.shape, shapes);
}

/** Returns a mask that broadcasts to [batch, heads, queries, keys]: of bool, or floats; null if there is none. */
export function jointMask(
  attnMask: Tensor | null,
  keyPaddingMask: Tensor | null,
  dtype: string,
  { batch, heads, queries, keys, isBatched }: MaskSizes,
): Tensor | null {
  let own: Tensor | null = null;
  if (attnMask) {
    const whole = [batch * heads, queries, keys];
    check('attnMask', attnMask, dtype, [[queries, keys], whole]);
    own = attnMask.rank === 3 ? reshape(attnMask, [batch, heads, queries, keys]) : attnMask;
  }
  if (!keyPaddingMask) return own;
  check('keyPaddingMask', keyPaddingMask, dtype, [isBatched ? [batch, keys] : [keys]]);
  const padding = reshape(keyPaddingMask, [batch, 1, 1, keys]);
  if (own === null) return padding;
  if (own.dtype === 'bool' && padding.dtype === 'bool') return logicalOr(own, padding);
  return add(asScores(own, dtype), asScores(padding, dtype));
}

/** Returns the values to add to the scores: −∞ where a bool mask is true. */
export const asScores = (mask: Tensor, dtype: string): Tensor =>
  mask.dtype === 'bool' ? where(mask, -Infinity, 0).to(dtype as 'float32') : mask;
