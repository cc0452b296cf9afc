// Losses of classes that are composed of other operations: nllLoss with weights or more than two dimensions, and cross
// entropy against probabilities. The results are PyTorch's.
import { scope } from '../../core/context.ts';
import { sameShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { ignoredProbabilities, lossShapes } from '../../errors.ts';
import { add, div, eq, mul } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { requireFloat, to } from '../elementwise/convert.ts';
import { neg } from '../elementwise/unary.ts';
import { gather, indexSelect } from '../indexing/lookup.ts';
import { logSoftmax } from '../layers/softmax.ts';
import { mean, sum } from '../reduce/reduce.ts';
import type { Reduction } from '../reduce/reduction.ts';
import { flatten, reshape, squeeze, unsqueeze } from '../shape/views.ts';
import type { ClassLossOptions, CrossEntropyOptions } from './class-options.ts';

export const defaultIgnoreIndex = -100;

export function checkWeight(op: string, weight: Tensor | undefined, classes: number): void {
  if (weight && !sameShape(weight.shape, [classes]))
    throw lossShapes(`${op}: weight`, weight.shape, [classes]);
}

export function weightedNll(
  logProbs: Tensor,
  labels: Tensor,
  reduction: Reduction,
  { weight, ignoreIndex = defaultIgnoreIndex }: ClassLossOptions,
): Tensor {
  checkWeight('nllLoss', weight, logProbs.shape[1]!);
  return scope(() => {
    const isIgnored = eq(labels, ignoreIndex);
    const known = where(isIgnored, 0, labels);
    const picked = neg(squeeze(gather(logProbs, 1, unsqueeze(known, 1)), 1));
    const one = weight ? reshape(indexSelect(weight, 0, flatten(known)), labels.shape) : 1;
    const counts = to(where(isIgnored, 0, one), logProbs.dtype);
    // No gradient reaches ignored rows, also where all rows are ignored and the sum of the counts is 0.
    const losses = where(isIgnored, 0, mul(picked, counts));
    if (reduction === 'none') return losses;
    return reduction === 'sum' ? sum(losses) : div(sum(losses), sum(counts));
  });
}

/**
 * Computes the cross entropy against probabilities of classes. 'mean' divides by the number of rows, not by
 * weights.
 */
export function softCrossEntropy(
  logits: Tensor,
  target: Tensor,
  reduction: Reduction,
  options: CrossEntropyOptions,
): Tensor {
  const op = 'crossEntropy';
  requireFloat(op, logits);
  if (logits.rank < 2) throw lossShapes(op, logits.shape, target.shape);
  const { weight, labelSmoothing: smoothing = 0, ignoreIndex = defaultIgnoreIndex } = options;
  // As in PyTorch. A negative number, which is no class, has no effect.
  if (ignoreIndex >= 0) throw ignoredProbabilities(op, ignoreIndex);
  const classes = logits.shape[1]!;
  checkWeight(op, weight, classes);
  return scope(() => {
    const soft = smoothing === 0 ? target : add(mul(target, 1 - smoothing), smoothing / classes);
    const parts = mul(logSoftmax(logits, 1), soft);
    const along = [classes, ...logits.shape.slice(2).map(() => 1)];
    const losses = neg(sum(weight ? mul(parts, reshape(weight, along)) : parts, 1));
    if (reduction === 'none') return losses;
    return reduction === 'sum' ? sum(losses) : mean(losses);
  });
}
