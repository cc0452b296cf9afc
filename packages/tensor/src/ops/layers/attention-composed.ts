// Attention composed of separate operations, with the matrix of weights in memory. Unlike the kernel, it
// gives the mask a gradient.
import { scope } from '../../core/context.ts';
import { ones } from '../../core/creation.ts';
import { isHalf } from '../../core/dtype.ts';
import type { Tensor } from '../../core/tensor.ts';
import type { Generator } from '../../random/random.ts';
import { add, eq, logicalNot, mul } from '../elementwise/binary.ts';
import { maskedFill, where } from '../elementwise/choose.ts';
import { to } from '../elementwise/convert.ts';
import { dropout } from '../elementwise/dropout.ts';
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

/** Computes attention with a floating mask; leading dimensions are broadcast. A query that sees no key gives 0. */
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
    const seen = weighting.causal ? maskedFill(scores, isAhead(scores), -Infinity) : scores;
    const weights = dropout(safeSoftmax(seen), weighting.dropout, { generator: weighting.generator });
    return to(matmul(weights, values), q.dtype);
  });
}

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
