// Losses of two tensors of one shape, element by element.
import { customFunction } from '../autograd/custom.ts';
import { scope } from '../context.ts';
import { badOption, lossShapes } from '../errors.ts';
import { sameShape } from '../shape.ts';
import type { Tensor } from '../tensor.ts';
import { recast } from './autocast.ts';
import { add, div, le, lt, maximum, mul, sub } from './binary.ts';
import { clamp, where } from './choose.ts';
import { requireFloat } from './convert.ts';
import { sum } from './reduce.ts';
import { checkedReduction, type LossOptions, reduceLosses } from './reduction.ts';
import { abs, exp, log, neg, sqrt, square } from './unary.ts';

/** Checks operands and options, and reduces what `losses` gives. */
function pairLoss(
  op: string,
  prediction: Tensor,
  target: Tensor,
  options: LossOptions,
  losses: (prediction: Tensor, target: Tensor) => Tensor,
): Tensor {
  const raised = recast('float32', [prediction, target], (p, t) => pairLoss(op, p!, t!, options, losses));
  if (raised) return raised;
  requireFloat(op, prediction);
  if (!sameShape(prediction.shape, target.shape)) throw lossShapes(op, prediction.shape, target.shape);
  const reduction = checkedReduction(op, options);
  return scope(() => reduceLosses(losses(prediction, target), reduction));
}

function checkedPositive(what: string, value: number): number {
  if (!(value > 0)) throw badOption(what, 'a number > 0', value);
  return value;
}

/** Squared differences. */
export function mseLoss(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  return pairLoss('mseLoss', prediction, target, options, (p, t) => square(sub(p, t)));
}

/** Absolute differences. */
export function l1Loss(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  return pairLoss('l1Loss', prediction, target, options, (p, t) => abs(sub(p, t)));
}

export interface HuberLossOptions extends LossOptions {
  /** Where squares give way to a straight line. Default 1. */
  readonly delta?: number;
}

/** ½d² for small differences d, delta · (|d| − ½delta) for others. */
export function huberLoss(prediction: Tensor, target: Tensor, options: HuberLossOptions = {}): Tensor {
  const delta = checkedPositive('huberLoss: delta', options.delta ?? 1);
  return pairLoss('huberLoss', prediction, target, options, (p, t) => {
    const distance = abs(sub(p, t));
    const line = mul(sub(distance, delta / 2), delta);
    return where(le(distance, delta), mul(square(distance), 0.5), line);
  });
}

export interface SmoothL1LossOptions extends LossOptions {
  /** Where squares give way to a straight line; 0 is l1Loss. Default 1. */
  readonly beta?: number;
}

/** ½d² ÷ beta for small differences d, |d| − ½beta for others. */
export function smoothL1Loss(prediction: Tensor, target: Tensor, options: SmoothL1LossOptions = {}): Tensor {
  const { beta = 1 } = options;
  if (beta === 0) return l1Loss(prediction, target, options);
  checkedPositive('smoothL1Loss: beta', beta);
  return pairLoss('smoothL1Loss', prediction, target, options, (p, t) => {
    const distance = abs(sub(p, t));
    return where(lt(distance, beta), mul(square(distance), 0.5 / beta), sub(distance, beta / 2));
  });
}

export interface BCELossOptions extends LossOptions {
  /** What each element counts; broadcast. Default 1. */
  readonly weight?: Tensor;
}

/** −(y log p + (1 − y) log(1 − p)), with logarithms ≥ −100. */
const binaryEntropy = customFunction<[Tensor, Tensor]>({
  name: 'bce',
  forward: (context, p, y) => {
    context.save(p, y);
    const [hit, miss] = [clamp(log(p), -100), clamp(log(sub(1, p)), -100)];
    return neg(add(mul(y, hit), mul(sub(1, y), miss)));
  },
  backward: ({ saved, needsGrad }, grad) => {
    const [p, y] = saved as [Tensor, Tensor];
    const rest = sub(1, p);
    return [
      div(mul(grad, sub(p, y)), maximum(mul(p, rest), 1e-12)),
      needsGrad[1] ? mul(grad, sub(clamp(log(rest), -100), clamp(log(p), -100))) : null,
    ];
  },
});

/** Binary cross entropy of probabilities against targets from 0 to 1. */
export function bce(probability: Tensor, target: Tensor, options: BCELossOptions = {}): Tensor {
  return pairLoss('bce', probability, target, options, (p, t) => {
    const losses = binaryEntropy(p, t);
    return options.weight ? mul(losses, options.weight) : losses;
  });
}

export interface BCEWithLogitsOptions extends BCELossOptions {
  /** What positive examples count, for example by class; broadcast. Default 1. */
  readonly posWeight?: Tensor;
}

/** bce of sigmoid(logits), without overflow. */
export function bceWithLogits(logits: Tensor, target: Tensor, options: BCEWithLogitsOptions = {}): Tensor {
  const { weight, posWeight } = options;
  return pairLoss('bceWithLogits', logits, target, options, (x, y) => {
    // log(1 + exp(−x))
    const softplus = add(log(add(exp(neg(abs(x))), 1)), maximum(neg(x), 0));
    const positive = posWeight ? mul(softplus, add(mul(sub(posWeight, 1), y), 1)) : softplus;
    const losses = add(mul(sub(1, y), x), positive);
    return weight ? mul(losses, weight) : losses;
  });
}

export interface KLDivOptions {
  /** 'batchmean' divides by the first size: the divergence as it is defined. Default 'mean', over elements, as in PyTorch. */
  readonly reduction?: LossOptions['reduction'] | 'batchmean';
  /** Whether the target is in logarithms, too. Default false. */
  readonly logTarget?: boolean;
}

/** The divergence of `target` from log-probabilities. */
export function klDiv(logProbs: Tensor, target: Tensor, options: KLDivOptions = {}): Tensor {
  const { reduction = 'mean', logTarget = false } = options;
  const isBatchMean = reduction === 'batchmean';
  return scope(() => {
    const loss = pairLoss(
      'klDiv',
      logProbs,
      target,
      { reduction: isBatchMean ? 'sum' : reduction },
      (p, t) => {
        if (logTarget) return mul(exp(t), sub(t, p));
        // 0 log 0 is 0.
        const logs = log(where(le(t, 0), 1, t));
        return mul(t, sub(logs, p));
      },
    );
    return isBatchMean ? div(loss, logProbs.shape[0] ?? 1) : loss;
  });
}

/** The cosine of the angle between vectors along `dim`. Lengths below `eps` count as `eps`. */
export function cosineSimilarity(a: Tensor, b: Tensor, dim = 1, eps = 1e-8): Tensor {
  const raised = recast('float32', [a, b], (x, y) => cosineSimilarity(x!, y!, dim, eps));
  if (raised) return raised;
  requireFloat('cosineSimilarity', a);
  const unit = (x: Tensor): Tensor => div(x, clamp(sqrt(sum(square(x), dim, true)), eps));
  return scope(() => sum(mul(unit(a), unit(b)), dim));
}

export interface CosineEmbeddingOptions extends LossOptions {
  /** Vectors that shall differ cost nothing while their cosine is below it. Default 0. */
  readonly margin?: number;
}

/** 1 − cosine of rows that shall be alike (label 1), max(0, cosine − margin) of rows that shall differ (label −1). */
export function cosineEmbeddingLoss(
  a: Tensor,
  b: Tensor,
  labels: Tensor,
  options: CosineEmbeddingOptions = {},
): Tensor {
  if (!sameShape(a.shape, b.shape)) throw lossShapes('cosineEmbeddingLoss', a.shape, b.shape);
  if (!sameShape(labels.shape, a.shape.slice(0, -1))) {
    throw lossShapes('cosineEmbeddingLoss: labels', labels.shape, a.shape.slice(0, -1));
  }
  const reduction = checkedReduction('cosineEmbeddingLoss', options);
  const { margin = 0 } = options;
  return scope(() => {
    const cosine = cosineSimilarity(a, b, -1);
    const losses = where(lt(labels, 0), maximum(sub(cosine, margin), 0), sub(1, cosine));
    return reduceLosses(losses, reduction);
  });
}
