// Losses of two tensors, element by element.

import { customFunction } from '../../autograd/custom.ts';
import { notAProbability } from '../../checks/argument-errors.ts';
import { badLossWeight, lossBroadcast } from '../../checks/op-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag, nonNegative, oneOf, positive, tensorOrNull } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { type DType, isFloat, promoteTypes } from '../../core/dtype.ts';
import { broadcastShapes, sameShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { lossShapes, mixedDtypes, needsFloat } from '../../errors.ts';
import { logSigmoid } from '../elementwise/activations/smooth.ts';
import { recast } from '../elementwise/autocast.ts';
import { add, div, eq, ge, gt, le, logicalAnd, maximum, mul, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { clamp } from '../elementwise/clamp.ts';
import { requireFloat, requireTensor, to } from '../elementwise/convert.ts';
import { abs, exp, log, neg, square } from '../elementwise/unary.ts';
import { argmin } from '../reduce/reduce.ts';
import { type LossOptions, lossChecks, lossOptions, reduceLosses } from '../reduce/reduction.ts';
import { expand, flatten } from '../shape/views.ts';

type Check = (op: string, prediction: Tensor, target: Tensor) => void;

/** Checks the operands, and reduces the losses that `losses` returns. */
function pairLoss(
  op: string,
  prediction: Tensor,
  target: Tensor,
  options: LossOptions,
  losses: (prediction: Tensor, target: Tensor) => Tensor,
  check: Check = equalShapes,
): Tensor {
  const raised = recast('float32', [prediction, target], (p, t) =>
    pairLoss(op, p!, t!, options, losses, check),
  );
  if (raised) return raised;
  requireTensor(op, prediction);
  requireTensor(op, target);
  check(op, prediction, target);
  return scope(() => reduceLosses(losses(prediction, target), options.reduction ?? 'mean'));
}

/** Returns both tensors in their joint dtype. */
function inOneDtype(p: Tensor, t: Tensor): [Tensor, Tensor] {
  const dtype = promoteTypes(p.dtype, t.dtype);
  return [to(p, dtype), to(t, dtype)];
}

function requireSameDtype(op: string, p: Tensor, t: Tensor): void {
  if (p.dtype !== t.dtype) throw mixedDtypes(op, p.dtype, t.dtype);
}

function requireOneFloat(op: string, prediction: Tensor, target: Tensor): void {
  const dtype = promoteTypes(prediction.dtype, target.dtype);
  if (!isFloat(dtype)) throw needsFloat(op, dtype);
}

function equalShapes(op: string, prediction: Tensor, target: Tensor): void {
  requireOneFloat(op, prediction, target);
  if (!sameShape(prediction.shape, target.shape)) throw lossShapes(op, prediction.shape, target.shape);
}

const warned = new Set<string>();

/**
 * Warns, once for each loss function, when shapes are broadcast, as PyTorch does: a forgotten dimension has the same
 * effect. Throws if they cannot be broadcast.
 */
function stretchedShapes(op: string, prediction: Tensor, target: Tensor): void {
  if (sameShape(prediction.shape, target.shape)) return;
  const shape = broadcastShapes(op, prediction.shape, target.shape);
  if (warned.has(op)) return;
  warned.add(op);
  const text = lossBroadcast(op, prediction.shape, target.shape, shape);
  process.emitWarning(text, { code: 'RINGWISE_LOSS_BROADCAST' });
}

/** Computes pairLoss after broadcasting, so that `losses` receives tensors of one shape. */
const broadcastLoss: typeof pairLoss = (op, prediction, target, options, losses) =>
  pairLoss(
    op,
    prediction,
    target,
    options,
    (p, t) => {
      const shape = broadcastShapes(op, p.shape, t.shape);
      return losses(expand(p, shape), expand(t, shape));
    },
    (name, p, t) => {
      requireOneFloat(name, p, t);
      stretchedShapes(name, p, t);
    },
  );

/** Computes squared differences. Shapes are broadcast, with a warning. */
export function mseLoss(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  checkOptions('mseLoss', options, lossOptions);
  return broadcastLoss('mseLoss', prediction, target, options, (p, t) => square(sub(...inOneDtype(p, t))));
}

/** Computes absolute differences. Shapes are broadcast, with a warning. */
export function l1Loss(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  checkOptions('l1Loss', options, lossOptions);
  return pairLoss('l1Loss', prediction, target, options, (p, t) => abs(sub(p, t)), stretchedShapes);
}

/** Options of huberLoss(). */
export interface HuberLossOptions extends LossOptions {
  /** The difference from which the loss is linear instead of quadratic. Default 1. */
  readonly delta?: number;
}

export const huberLossOptions = optionChecks<HuberLossOptions>({ ...lossChecks, delta: positive });

/** Makes a Huber loss. Its gradient is written out, because that of the formula is NaN for infinite differences. */
const huberOf = (name: string, delta: number): ((prediction: Tensor, target: Tensor) => Tensor) =>
  customFunction<[Tensor, Tensor]>({
    name,
    forward: (context, p, t) => {
      context.save(p, t);
      const distance = abs(sub(p, t));
      const line = mul(sub(distance, delta / 2), delta);
      return where(gt(distance, delta), line, mul(square(distance), 0.5));
    },
    backward: ({ saved }, grad) => {
      const [p, t] = saved as [Tensor, Tensor];
      const slope = mul(grad, clamp(sub(p, t), -delta, delta));
      return [slope, neg(slope)];
    },
  });

/**
 * Computes ½d² for small differences d, delta · (|d| − ½delta) for others. Both tensors have one dtype; shapes are
 * broadcast, with a warning.
 */
export function huberLoss(prediction: Tensor, target: Tensor, options: HuberLossOptions = {}): Tensor {
  checkOptions('huberLoss', options, huberLossOptions);
  const { delta = 1 } = options;
  return broadcastLoss('huberLoss', prediction, target, options, (p, t) => {
    requireSameDtype('huberLoss', p, t);
    return huberOf('huberLoss', delta)(p, t);
  });
}

/** Options of smoothL1Loss(). */
export interface SmoothL1LossOptions extends LossOptions {
  /** The difference above which the loss is linear instead of quadratic; 0 gives l1Loss. Default 1. */
  readonly beta?: number;
}

export const smoothL1LossOptions = optionChecks<SmoothL1LossOptions>({ ...lossChecks, beta: nonNegative });

/** Computes ½d² ÷ beta for small differences d, |d| − ½beta for others. Shapes are broadcast, with a warning. */
export function smoothL1Loss(prediction: Tensor, target: Tensor, options: SmoothL1LossOptions = {}): Tensor {
  checkOptions('smoothL1Loss', options, smoothL1LossOptions);
  const { beta = 1, ...rest } = options;
  if (beta === 0) return l1Loss(prediction, target, rest);
  return broadcastLoss('smoothL1Loss', prediction, target, options, (p, t) =>
    div(huberOf('smoothL1Loss', beta)(...inOneDtype(p, t)), beta),
  );
}

/** Options of bce(). */
export interface BCELossOptions extends LossOptions {
  /** Weight of each element; broadcast. Default 1. */
  readonly weight?: Tensor;
}

const bceChecks = { ...lossChecks, weight: tensorOrNull };
export const bceOptions = optionChecks<BCELossOptions>(bceChecks);

/**
 * The lower bound of p (1 − p), the divisor of the gradient: 1e-12, which PyTorch rounds to float32 for every
 * dtype.
 */
const leastVariance = Math.fround(1e-12);

/** Computes −(y log p + (1 − y) log(1 − p)), with logarithms ≥ −100. */
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
      div(mul(grad, sub(p, y)), maximum(mul(p, rest), leastVariance)),
      needsGrad[1] ? mul(grad, sub(log(rest), log(p))) : null,
    ];
  },
});

/** Throws unless `weight` can be broadcast to the shape of the losses. */
function checkStretch(what: string, weight: Tensor, losses: Tensor): void {
  if (!sameShape(broadcastShapes(what, losses.shape, weight.shape), losses.shape))
    throw badLossWeight(what, weight.shape, losses.shape);
}

/**
 * Multiplies losses by weights, which are broadcast. The result has `dtype`: as in PyTorch, weights do not
 * change it.
 */
function weighed(op: string, losses: Tensor, weight: Tensor | undefined, dtype: DType): Tensor {
  if (weight) checkStretch(`${op}: weight`, weight, losses);
  return to(weight ? mul(losses, weight) : losses, dtype);
}

/** Throws for an element outside of 0 to 1, NaN included. Checks tensors in host memory only. */
function checkProbabilities(what: string, a: Tensor): void {
  if (a.device !== 'cpu' || a.count === 0) return;
  const position = argmin(to(isProbability(a), 'uint8')).item();
  const value = flatten(a.detach()).at(position).item();
  if (!(value >= 0 && value <= 1)) throw notAProbability(what, value, position);
}

const isProbability = (a: Tensor): Tensor => logicalAnd(ge(a, 0), le(a, 1));

/**
 * Computes the binary cross entropy of probabilities against targets, both from 0 to 1. Other values throw;
 * on a device, where they are not read, their loss is NaN.
 */
export function bce(probability: Tensor, target: Tensor, options: BCELossOptions = {}): Tensor {
  checkOptions('bce', options, bceOptions);
  return pairLoss('bce', probability, target, options, (p, t) => {
    requireSameDtype('bce', p, t);
    checkProbabilities('probabilities', p);
    checkProbabilities('targets', t);
    const checked = binaryEntropy(p, t);
    const losses = p.device === 'cpu' ? checked : where(isProbability(t), checked, NaN);
    return weighed('bce', losses, options.weight, p.dtype);
  });
}

/** Options of bceWithLogits(). */
export interface BCEWithLogitsOptions extends BCELossOptions {
  /** Weight of positive examples, for example one for each class; broadcast. Default 1. */
  readonly posWeight?: Tensor;
}

export const bceWithLogitsOptions = optionChecks<BCEWithLogitsOptions>({
  ...bceChecks,
  posWeight: tensorOrNull,
});

/** Computes bce of sigmoid(logits), without overflow. */
export function bceWithLogits(logits: Tensor, target: Tensor, options: BCEWithLogitsOptions = {}): Tensor {
  checkOptions('bceWithLogits', options, bceWithLogitsOptions);
  const { weight, posWeight } = options;
  return pairLoss('bceWithLogits', logits, target, options, (x, y) => {
    requireFloat('bceWithLogits', x);
    requireFloat('bceWithLogits: target', y);
    if (posWeight) checkStretch('bceWithLogits: posWeight', posWeight, x);
    const ofPositive = neg(logSigmoid(x));
    const positive = posWeight ? mul(ofPositive, add(mul(sub(posWeight, 1), y), 1)) : ofPositive;
    const losses = add(mul(sub(1, y), x), positive);
    return weighed('bceWithLogits', losses, weight, y.dtype);
  });
}

/** Computes t log t, and 0 where t is 0. Its gradient is NaN there, as in PyTorch. */
const timesLog = customFunction<[Tensor]>({
  name: 'klDiv',
  forward: (context, t) => {
    context.save(t);
    return mul(t, logButOfZero(t));
  },
  backward: ({ saved }, grad) => {
    const t = saved[0]!;
    return mul(grad, add(logButOfZero(t), div(t, t)));
  },
});

const logButOfZero = (t: Tensor): Tensor => log(where(eq(t, 0), 1, t));

/** Options of klDiv(). */
export interface KLDivOptions {
  /**
   * 'batchmean' divides the sum by the first size, which gives the divergence by its definition. Default 'mean', over
   * elements, as in PyTorch.
   */
  readonly reduction?: LossOptions['reduction'] | 'batchmean';
  /** Whether the target holds logarithms too. Default false. */
  readonly logTarget?: boolean;
}

export const klDivOptions = optionChecks<KLDivOptions>({
  reduction: oneOf('mean', 'sum', 'none', 'batchmean'),
  logTarget: flag,
});

/** Computes the Kullback–Leibler divergence of `target` from log-probabilities. Shapes are broadcast. */
export function klDiv(logProbs: Tensor, target: Tensor, options: KLDivOptions = {}): Tensor {
  checkOptions('klDiv', options, klDivOptions);
  const { reduction = 'mean', logTarget = false } = options;
  const isBatchMean = reduction === 'batchmean';
  return scope(() => {
    const loss = pairLoss(
      'klDiv',
      logProbs,
      target,
      { reduction: isBatchMean ? 'sum' : reduction },
      (p, t) => {
        requireFloat('klDiv', p);
        requireFloat('klDiv: target', t);
        return logTarget ? mul(exp(t), sub(t, p)) : sub(timesLog(t), mul(t, p));
      },
      (op) => void broadcastShapes(op, logProbs.shape, target.shape),
    );
    return isBatchMean ? div(loss, logProbs.shape[0] ?? 1) : loss;
  });
}
