// Cross entropy of the scores that a linear layer computes.
import { badLinearLoss } from '../../checks/loss-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { share, tensorOrNull } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { countOf, sameShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { requireOperand, requireTensor } from '../elementwise/convert.ts';
import { linear } from '../matrix/linear.ts';
import { flatten, reshape } from '../shape/views.ts';
import { type CrossEntropyOptions, classLossChecks } from './class-options.ts';
import { crossEntropy } from './cross-entropy.ts';

/** Options of linearCrossEntropy(). */
export interface LinearCrossEntropyOptions extends CrossEntropyOptions {
  /** Added to the scores: [classes], or [classes, …] in the shape of the weight without the last dimension. */
  readonly linearBias?: Tensor | null;
}

export const linearCrossEntropyChecks = { ...classLossChecks, labelSmoothing: share };
const linearCrossEntropyOptions = optionChecks<LinearCrossEntropyOptions>({
  ...linearCrossEntropyChecks,
  linearBias: tensorOrNull,
});

/**
 * Computes crossEntropy() of linear(x, linearWeight, linearBias) against labels or probabilities: x is [batch, in] or
 * [in], linearWeight [classes, in], or [classes, …, in] for a loss of more dimensions. The scores are computed at once.
 */
export function linearCrossEntropy(
  x: Tensor,
  linearWeight: Tensor,
  target: Tensor,
  options: LinearCrossEntropyOptions = {},
): Tensor {
  const op = 'linearCrossEntropy';
  requireTensor(op, x);
  requireOperand(op, 'linearWeight', linearWeight);
  requireOperand(op, 'target', target);
  checkOptions(op, options, linearCrossEntropyOptions);
  const { linearBias = null, ...rest } = options;
  const space = linearWeight.shape.slice(0, -1);
  const fits =
    (x.rank === 1 || x.rank === 2) &&
    linearWeight.rank >= 2 &&
    (linearWeight.rank === 2 || x.rank === 2) &&
    x.shape.at(-1) === linearWeight.shape.at(-1) &&
    (linearBias === null || sameShape(linearBias.shape, space));
  if (!fits) throw badLinearLoss(x.shape, linearWeight.shape, linearBias?.shape ?? null);
  return scope(() => {
    const rows = reshape(linearWeight, [countOf(space), x.shape.at(-1)!]);
    const scores = linear(x, rows, linearBias && flatten(linearBias));
    return crossEntropy(reshape(scores, [...x.shape.slice(0, -1), ...space]), target, rest);
  });
}
