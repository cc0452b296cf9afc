// Losses of classes where rows or classes count differently, made of other operations; the numbers are PyTorch's.
import { scope } from '../context.ts';
import { badOption, lossShapes } from '../errors.ts';
import { sameShape } from '../shape.ts';
import type { Tensor } from '../tensor.ts';
import { add, div, eq, mul } from './binary.ts';
import { where } from './choose.ts';
import { requireFloat, to } from './convert.ts';
import { gather, indexSelect } from './lookup.ts';
import type { CrossEntropyOptions } from './loss.ts';
import { mean, sum } from './reduce.ts';
import type { Reduction } from './reduction.ts';
import { logSoftmax } from './softmax.ts';
import { neg } from './unary.ts';
import { flatten, reshape, squeeze, unsqueeze } from './views.ts';

export const defaultIgnoreIndex = -100;

function checkedSmoothing(op: string, { labelSmoothing = 0 }: CrossEntropyOptions): number {
  if (labelSmoothing >= 0 && labelSmoothing <= 1) return labelSmoothing;
  throw badOption(`${op}: labelSmoothing`, 'a number from 0 to 1', labelSmoothing);
}

/** The weights of classes in a shape that is broadcast over log-probabilities. */
function alongClasses(op: string, weight: Tensor, a: Tensor): Tensor {
  const shape = [a.shape[1]!];
  if (!sameShape(weight.shape, shape)) throw lossShapes(`${op}: weight`, weight.shape, shape);
  return reshape(weight, [...shape, ...a.shape.slice(2).map(() => 1)]);
}

/** −Σ over classes of log-probability × what the class counts. */
function allClasses(op: string, logProbs: Tensor, weight: Tensor | undefined): Tensor {
  const weighted = weight ? mul(logProbs, alongClasses(op, weight, logProbs)) : logProbs;
  return neg(sum(weighted, 1));
}

export function weightedNll(
  op: string,
  logProbs: Tensor,
  labels: Tensor,
  reduction: Reduction,
  options: CrossEntropyOptions,
): Tensor {
  const smoothing = checkedSmoothing(op, options);
  const { weight, ignoreIndex = defaultIgnoreIndex } = options;
  if (weight) alongClasses(op, weight, logProbs).dispose();
  return scope(() => {
    const isIgnored = eq(labels, ignoreIndex);
    const known = where(isIgnored, 0, labels);
    const picked = neg(squeeze(gather(logProbs, 1, unsqueeze(known, 1)), 1));
    const one = weight ? reshape(indexSelect(weight, 0, flatten(known)), labels.shape) : 1;
    const counts = to(where(isIgnored, 0, one), logProbs.dtype);
    const total = (losses: Tensor): Tensor => {
      if (reduction === 'none') return losses;
      return reduction === 'sum' ? sum(losses) : div(sum(losses), sum(counts));
    };
    const loss = total(mul(picked, counts));
    if (smoothing === 0) return loss;
    const even = total(where(isIgnored, 0, allClasses(op, logProbs, weight)));
    return add(mul(loss, 1 - smoothing), mul(even, smoothing / logProbs.shape[1]!));
  });
}

/** Against probabilities of classes. 'mean' divides by the number of rows, whatever classes count. */
export function softCrossEntropy(
  logits: Tensor,
  target: Tensor,
  reduction: Reduction,
  options: CrossEntropyOptions,
): Tensor {
  const op = 'crossEntropy';
  requireFloat(op, logits);
  if (logits.rank < 2) throw lossShapes(op, logits.shape, target.shape);
  const smoothing = checkedSmoothing(op, options);
  return scope(() => {
    const spread = smoothing / logits.shape[1]!;
    const soft = smoothing === 0 ? target : add(mul(target, 1 - smoothing), spread);
    const losses = allClasses(op, mul(logSoftmax(logits, 1), soft), options.weight);
    if (reduction === 'none') return losses;
    return reduction === 'sum' ? sum(losses) : mean(losses);
  });
}
