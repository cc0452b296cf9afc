// Keys and values that MultiheadAttention appends to those of its input, and that no mask hides.
import { zeros } from '../../../core/creation.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { cat, expand, reshape } from '../../../ops/index.ts';

/** Returns the heads of keys or values, [batch, heads, time, width], with one learned row behind and one of zeros. */
export function withExtraRows(heads: Tensor, learned: Tensor | null, hasZeros: boolean): Tensor {
  const [batch, count, , width] = heads.shape as [number, number, number, number];
  const { dtype, device } = heads;
  const rows = [heads];
  if (learned) rows.push(expand(reshape(learned, [1, count, 1, width]), [batch, count, 1, width]));
  if (hasZeros) rows.push(zeros([batch, count, 1, width], { dtype, device }));
  return rows.length === 1 ? heads : cat(rows, 2);
}

/** Returns a mask [..., keys] with columns for `extra` more keys, which it does not hide. */
export function withExtraColumns(mask: Tensor | null, extra: number): Tensor | null {
  if (mask === null || extra === 0) return mask;
  const { dtype, device, shape } = mask;
  return cat([mask, zeros(shape.with(-1, extra), { dtype, device })], -1);
}
