// Attention composed of separate operations, with the matrix of weights in memory. Unlike the kernel, it computes a
// gradient of the mask.
import type { Stream } from '../../backends/operands.ts';
import { scope } from '../../core/context.ts';
import { ones } from '../../core/creation.ts';
import { isHalf } from '../../core/dtype.ts';
import type { Tensor } from '../../core/tensor.ts';
import type { Generator } from '../../random/random.ts';
import { add, eq, logicalNot, mul } from '../elementwise/binary.ts';
import { maskedFill, where } from '../elementwise/choose.ts';
import { to } from '../elementwise/convert.ts';
import { dropout, dropped } from '../elementwise/dropout.ts';
import { matmul } from '../matrix/matmul.ts';
import { max } from '../reduce/reduce.ts';
import { tril } from '../shape/order.ts';
import { transpose } from '../shape/views.ts';
import type { Heads } from './attention-heads.ts';
import { softmax } from './softmax.ts';

export interface Weighting {
  readonly causal: boolean;
  readonly scale: number;
  readonly dropout: number;
  readonly generator: Generator;
}

/**
 * Computes attention with a floating mask; leading dimensions are broadcast. The result of a query that sees no key is
 * 0.
 */
export function composedAttention({ q, k, v, mask }: Heads, weighting: Weighting): Tensor {
  return scope(() => {
    const dtype = isHalf(q.dtype) ? 'float32' : q.dtype;
    const [queries, keys, values, added] = [q, k, v, mask!].map((a) => to(a, dtype)) as [
      Tensor,
      Tensor,
      Tensor,
      Tensor,
    ];
    const scores = add(matmul(mul(queries, weighting.scale), transpose(keys, -1, -2)), added);
    const weights = safeSoftmax(seenBy(scores, weighting.causal));
    const kept = dropout(weights, weighting.dropout, { generator: weighting.generator });
    return to(matmul(kept, values), q.dtype);
  });
}

/** Values that the kernel has read: the mask in its form, and the stream of its dropout. */
export interface KernelWeighting {
  readonly causal: boolean;
  readonly scale: number;
  readonly dropout: number;
  readonly stream: Stream;
}

/** Recomputes the attention kernel, with the same dropout, by operations that have second gradients. */
export function recomputedAttention(
  [q, k, v]: readonly Tensor[],
  mask: Tensor | null,
  { causal, scale, dropout: share, stream }: KernelWeighting,
): Tensor {
  const products = matmul(mul(q!, scale), transpose(k!, -1, -2));
  const isHidden = mask?.dtype === 'bool';
  const scores =
    mask === null
      ? products
      : isHidden
        ? maskedFill(products, logicalNot(mask), -Infinity)
        : add(products, mask);
  const weights = safeSoftmax(seenBy(scores, causal));
  return matmul(share > 0 ? dropped(weights, share, stream) : weights, v!);
}

const seenBy = (scores: Tensor, causal: boolean): Tensor =>
  causal ? maskedFill(scores, isAhead(scores), -Infinity) : scores;

/** Returns a bool matrix that is true for keys that come after the query. */
function isAhead(scores: Tensor): Tensor {
  return logicalNot(tril(ones(scores.shape.slice(-2), { dtype: 'bool', device: scores.device })));
}

/** Computes softmax, and zeros without a gradient for rows of −∞. */
function safeSoftmax(scores: Tensor): Tensor {
  if (scores.shape.at(-1) === 0) return scores;
  const isBlind = eq(max(scores.detach(), -1, true), -Infinity);
  return where(isBlind, 0, softmax(where(isBlind, 0, scores)));
}
