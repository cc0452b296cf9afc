// The leading dimensions of the operands of attention. Kernels take [batch, heads, rows, width]; PyTorch accepts any
// number of leading dimensions, which are broadcast, and groups of query heads that share a head of keys and values.

import { badHeadGroups } from '../../checks/op-errors.ts';
import { countOf, type Shape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badAttention, badAttentionMaskShape } from '../../errors.ts';
import { unflatten } from '../shape/rearrange.ts';
import { expand, reshape, unsqueeze } from '../shape/views.ts';

export interface Heads {
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
  readonly mask: Tensor | null;
}

const leadOf = ({ shape }: Tensor): Shape => shape.slice(0, -2);

/** Returns the size that two sizes broadcast to; NaN if they do not fit. */
const stretched = (a: number, b: number): number => (a === b || b === 1 ? a : a === 1 ? b : NaN);

/** Returns the broadcast leading dimensions of queries, keys and values. */
export function sharedLead(op: string, { q, k, v }: Heads): Shape {
  const rank = Math.max(q.rank, k.rank, v.rank) - 2;
  const lead = Array.from({ length: rank }, (_, d) =>
    [q, k, v].map((a) => a.shape[a.rank - 2 - rank + d] ?? 1).reduce(stretched),
  );
  if (lead.some(Number.isNaN)) throw badAttention(op, q.shape, k.shape, v.shape);
  return lead;
}

/** Returns the operands as [batch, heads, rows, width], as views where strides allow it. */
export function batched({ q, k, v, mask }: Heads, lead: Shape): Heads {
  const [batch, heads] = [countOf(lead.slice(0, -1)), lead.at(-1) ?? 1];
  const collapsed = (a: Tensor): Tensor => {
    const tail = a.shape.slice(-2);
    const whole = expand(a, [...lead, ...tail]);
    return lead.length === 2 ? whole : reshape(whole, [batch, heads, ...tail]);
  };
  // The kernel broadcasts a mask that all heads share.
  const isShared = mask?.shape.slice(0, -2).every((size) => size === 1);
  const all = mask && (isShared ? reshape(mask, mask.shape.slice(-2)) : collapsed(mask));
  return { q: collapsed(q), k: collapsed(k), v: collapsed(v), mask: all };
}

/** Returns the operands with the heads of a group in their own dimension: [..., heads of keys, group, rows, width]. */
export function grouped(op: string, { q, k, v, mask }: Heads): Heads {
  const [queries, keys, values] = [q, k, v].map((a) => a.shape[a.rank - 3]);
  const fits = queries !== undefined && keys !== undefined && values !== undefined;
  if (!fits || queries % keys !== 0 || queries % values !== 0)
    throw badHeadGroups(op, q.shape, k.shape, v.shape);
  // All groups have one size. If keys and values differ in their heads, every query head is a group of its own.
  const heads = keys === values ? keys : queries;
  const apart = (a: Tensor): Tensor => {
    const own = a.shape[a.rank - 3]!;
    if (own === heads) return unsqueeze(a, -3);
    const many = expand(unsqueeze(a, -3), [...a.shape.slice(0, -2), heads / own, ...a.shape.slice(-2)]);
    return unsqueeze(reshape(many, [...a.shape.slice(0, -3), heads, ...a.shape.slice(-2)]), -3);
  };
  return {
    q: unflatten(q, -3, [heads, queries / heads]),
    k: apart(k),
    v: apart(v),
    mask: mask && groupedMask(op, mask, queries, heads, [...leadOf(q), q.shape.at(-2)!, k.shape.at(-2)!]),
  };
}

function groupedMask(op: string, mask: Tensor, queries: number, heads: number, full: Shape): Tensor {
  if (mask.rank < 3) return mask;
  const own = mask.shape[mask.rank - 3];
  if (own === 1) return unsqueeze(mask, -3);
  if (own !== queries) throw badAttentionMaskShape(op, mask.shape, full);
  return unflatten(mask, -3, [heads, queries / heads]);
}
