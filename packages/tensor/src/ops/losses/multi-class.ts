// Losses of scores of classes with a margin, or of several labels at once.
import { badClassScores } from '../../checks/loss-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { type Check, finite, tensorOrNull } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { arange } from '../../core/creation.ts';
import { sameShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { differentShapes } from '../../errors.ts';
import { logSigmoid } from '../elementwise/activations/smooth.ts';
import { add, div, eq, logicalAnd, logicalNot, mul, ne, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { requireFloat, requireTensor } from '../elementwise/convert.ts';
import { neg, relu, square } from '../elementwise/unary.ts';
import { gather, indexSelect } from '../indexing/lookup.ts';
import { any, mean, sum } from '../reduce/reduce.ts';
import { type LossOptions, lossChecks, lossOptions, reduceLosses } from '../reduce/reduction.ts';
import { cumsum } from '../shape/order.ts';
import { reshape, squeeze, unsqueeze } from '../shape/views.ts';

/** Computes log(1 + exp(−target · input)), for targets of 1 and −1. Shapes are broadcast. */
export function softMarginLoss(input: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  const op = 'softMarginLoss';
  checkOptions(op, options, lossOptions);
  requireFloat(op, input);
  requireTensor(op, target);
  return scope(() => reduceLosses(neg(logSigmoid(mul(input, target))), options.reduction ?? 'mean'));
}

/** Options of multilabelSoftMarginLoss(). */
export interface MultilabelSoftMarginOptions extends LossOptions {
  /** One weight for each class; broadcast. Default 1. */
  readonly weight?: Tensor;
}

export const multilabelSoftMarginOptions = optionChecks<MultilabelSoftMarginOptions>({
  ...lossChecks,
  weight: tensorOrNull,
});

/** Computes the mean over classes of the binary cross entropy of sigmoid(input), for targets of 0 and 1. */
export function multilabelSoftMarginLoss(
  input: Tensor,
  target: Tensor,
  options: MultilabelSoftMarginOptions = {},
): Tensor {
  const op = 'multilabelSoftMarginLoss';
  checkOptions(op, options, multilabelSoftMarginOptions);
  requireFloat(op, input);
  requireTensor(op, target);
  const { weight, reduction = 'mean' } = options;
  return scope(() => {
    const hit = mul(target, logSigmoid(input));
    const miss = mul(sub(1, target), logSigmoid(neg(input)));
    const losses = neg(add(hit, miss));
    return reduceLosses(mean(weight ? mul(losses, weight) : losses, -1), reduction);
  });
}

/** Options of multiMarginLoss(). */
export interface MultiMarginOptions extends LossOptions {
  /** The power of each difference: 1 (default) or 2. */
  readonly p?: 1 | 2;
  /** Default 1. */
  readonly margin?: number;
  /** One weight for each class, of shape [classes]; the loss is multiplied by the weight of the label. Default 1. */
  readonly weight?: Tensor;
}

const oneOrTwo: Check = { expected: '1 or 2', fits: (value) => value === 1 || value === 2 };
export const multiMarginOptions = optionChecks<MultiMarginOptions>({
  ...lossChecks,
  p: oneOrTwo,
  margin: finite,
  weight: tensorOrNull,
});

/**
 * Computes the mean over classes of max(0, margin − score of the label + score)^p, without the label itself, for scores
 * [batch, classes] and labels [batch], or scores [classes] and one label.
 */
export function multiMarginLoss(input: Tensor, target: Tensor, options: MultiMarginOptions = {}): Tensor {
  const op = 'multiMarginLoss';
  checkOptions(op, options, multiMarginOptions);
  requireFloat(op, input);
  requireTensor(op, target);
  const { p = 1, margin = 1, weight, reduction = 'mean' } = options;
  const [classes] = input.shape.slice(-1);
  const isRow = input.rank === 1;
  const fits = isRow
    ? target.rank <= 1 && target.count === 1
    : sameShape(target.shape, [input.shape[0] ?? -1]);
  if (input.rank > 2 || input.rank === 0 || classes === 0 || !fits)
    throw badClassScores(op, input.shape, target.shape, 'labels [batch], or one label');
  if (weight && !sameShape(weight.shape, [classes!]))
    throw differentShapes(`${op}: weight`, weight.shape, [classes!]);
  return scope(() => {
    const scores = isRow ? unsqueeze(input, 0) : input;
    const labels = reshape(target, [scores.shape[0]!, 1]);
    const own = gather(scores, 1, labels);
    const gaps = relu(sub(add(scores, margin), own));
    const powers = p === 1 ? gaps : square(gaps);
    const isOther = ne(arange(0, classes!, 1, { dtype: 'int64', device: input.device }), labels);
    const weighed = weight
      ? mul(powers, indexSelect(weight, 0, reshape(labels, [labels.count])).unsqueeze(1))
      : powers;
    const losses = div(sum(where(isOther, weighed, 0), 1), classes!);
    return reduceLosses(isRow ? reshape(losses, target.shape) : losses, reduction);
  });
}

/**
 * Computes the sum over labels and other classes of max(0, 1 − score of the label + score of the other), divided by the
 * number of classes. Scores are [batch, classes] or [classes]; the int64 target has the same shape, and its labels end
 * before the first −1.
 */
export function multilabelMarginLoss(input: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  const op = 'multilabelMarginLoss';
  checkOptions(op, options, lossOptions);
  requireFloat(op, input);
  requireTensor(op, target);
  if (input.rank > 2 || input.rank === 0 || !sameShape(input.shape, target.shape))
    throw badClassScores(op, input.shape, target.shape, 'labels of the same shape');
  const isRow = input.rank === 1;
  return scope(() => {
    const [scores, labels] = isRow ? [unsqueeze(input, 0), unsqueeze(target, 0)] : [input, target];
    const classes = scores.shape[1]!;
    const isLabel = eq(cumsum(eq(labels, -1).to('int32'), 1), 0);
    const known = where(isLabel, labels, 0);
    const all = arange(0, classes, 1, { dtype: 'int64', device: input.device });
    // [batch, label, class]
    const names = logicalAnd(eq(unsqueeze(known, -1), all), unsqueeze(isLabel, -1));
    const isOther = logicalNot(any(names, 1));
    const own = unsqueeze(gather(scores, 1, known), -1);
    const gaps = relu(sub(add(unsqueeze(scores, 1), 1), own));
    const counts = logicalAnd(unsqueeze(isLabel, -1), unsqueeze(isOther, 1));
    const losses = div(sum(where(counts, gaps, 0), [1, 2]), classes);
    return reduceLosses(isRow ? squeeze(losses, 0) : losses, options.reduction ?? 'mean');
  });
}
