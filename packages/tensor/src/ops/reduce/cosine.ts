// The cosine of the angle between vectors, and the loss that is made of it.

import { customFunction } from '../../autograd/custom.ts';
import { checkInteger, checkNumber } from '../../checks/arguments.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { finite } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { isFloat, promoteTypes } from '../../core/dtype.ts';
import { broadcastShapes, sameShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { lossShapes, needsFloat } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { add, div, eq, mul, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { clamp } from '../elementwise/clamp.ts';
import { requireTensor, to } from '../elementwise/convert.ts';
import { sqrt, square } from '../elementwise/unary.ts';
import { expand } from '../shape/views.ts';
import { sum } from './reduce.ts';
import { type LossOptions, lossChecks, reduceLosses } from './reduction.ts';
import { norm } from './vector-norm.ts';

/** Raises lengths below `eps` to `eps`. As in PyTorch, the gradient passes unchanged. */
const atLeast = customFunction<[Tensor, number]>({
  name: 'cosineSimilarity',
  forward: (_, length, eps) => clamp(length, eps),
  backward: (_, grad) => [grad, null],
});

/**
 * Computes the cosine of the angle between vectors along `dim`, after broadcasting. Lengths below `eps` count as `eps`;
 * the gradient of a vector of zeros is the other vector divided by its length and by `eps`.
 */
export function cosineSimilarity(a: Tensor, b: Tensor, dim = 1, eps = 1e-8): Tensor {
  const op = 'cosineSimilarity';
  const raised = recast('float32', [a, b], (x, y) => cosineSimilarity(x!, y!, dim, eps));
  if (raised) return raised;
  requireTensor(op, a);
  requireTensor(op, b);
  checkInteger(op, 'the dimension', dim);
  checkNumber(op, 'eps', eps);
  const dtype = promoteTypes(a.dtype, b.dtype);
  if (!isFloat(dtype)) throw needsFloat(op, dtype);
  return scope(() => {
    const shape = broadcastShapes(op, a.shape, b.shape);
    // As in PyTorch, the length of a float is rounded to its own dtype: 0 in float16 for a small eps.
    const [left, right] = [a, b].map((x) => expand(isFloat(x.dtype) ? x : to(x, dtype), shape));
    const unit = (x: Tensor): Tensor => div(x, atLeast(norm(x, dim, { keepDim: true }), eps));
    return sum(mul(unit(left!), unit(right!)), dim);
  });
}

/** Options of cosineEmbeddingLoss(). */
export interface CosineEmbeddingOptions extends LossOptions {
  /** The cosine up to which vectors that should differ have loss 0. Default 0. */
  readonly margin?: number;
}

export const cosineEmbeddingOptions = optionChecks<CosineEmbeddingOptions>({ ...lossChecks, margin: finite });

/**
 * Computes 1 − cosine for rows that should be alike (label 1), max(0, cosine − margin) for rows that should
 * differ (label −1), and 0 for other labels.
 */
export function cosineEmbeddingLoss(
  a: Tensor,
  b: Tensor,
  labels: Tensor,
  options: CosineEmbeddingOptions = {},
): Tensor {
  requireTensor('cosineEmbeddingLoss', a);
  requireTensor('cosineEmbeddingLoss', b);
  requireTensor('cosineEmbeddingLoss', labels);
  checkOptions('cosineEmbeddingLoss', options, cosineEmbeddingOptions);
  if (!sameShape(a.shape, b.shape)) throw lossShapes('cosineEmbeddingLoss', a.shape, b.shape);
  if (!sameShape(labels.shape, a.shape.slice(0, -1))) {
    throw lossShapes('cosineEmbeddingLoss: labels', labels.shape, a.shape.slice(0, -1));
  }
  const { reduction = 'mean', margin = 0 } = options;
  return scope(() => {
    const cosine = cosineOfRows(a, b);
    const apart = clamp(sub(cosine, margin), 0);
    const losses = where(eq(labels, 1), sub(1, cosine), where(eq(labels, -1), apart, 0));
    return reduceLosses(losses, reduction);
  });
}

/** Computes the similarity as PyTorch does for this loss: 1e-12 on squared lengths gives zeros a gradient. */
function cosineOfRows(a: Tensor, b: Tensor): Tensor {
  const squaredLength = (x: Tensor): Tensor => add(sum(square(x), -1), 1e-12);
  return div(sum(mul(a, b), -1), sqrt(mul(squaredLength(a), squaredLength(b))));
}
