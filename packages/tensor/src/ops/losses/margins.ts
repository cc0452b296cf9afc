// Losses with a margin: how far scores or distances should be apart.

import { checkNumber } from '../../checks/arguments.ts';
import { differentRanks } from '../../checks/loss-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { aFunction, finite, flag, positive } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import type { Tensor } from '../../core/tensor.ts';
import { recast } from '../elementwise/autocast.ts';
import { add, eq, minimum, mul, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { clamp } from '../elementwise/clamp.ts';
import { requireFloat, requireTensor } from '../elementwise/convert.ts';
import { neg } from '../elementwise/unary.ts';
import { type LossOptions, lossChecks, reduceLosses } from '../reduce/reduction.ts';
import { norm } from '../reduce/vector-norm.ts';

/** Options of marginRankingLoss() and hingeEmbeddingLoss(). */
export interface MarginOptions extends LossOptions {
  /** Default 0 for marginRankingLoss(), 1 for hingeEmbeddingLoss(). */
  readonly margin?: number;
}

export const marginOptions = optionChecks<MarginOptions>({ ...lossChecks, margin: finite });

function requireRanks(op: string, ...tensors: readonly Tensor[]): void {
  for (const tensor of tensors) requireTensor(op, tensor);
  if (tensors.some(({ rank }) => rank !== tensors[0]!.rank))
    throw differentRanks(
      op,
      tensors.map(({ shape }) => shape),
    );
}

/** Computes max(0, −target · (a − b) + margin), for a target of 1 where a should be larger, −1 where b should. */
export function marginRankingLoss(a: Tensor, b: Tensor, target: Tensor, options: MarginOptions = {}): Tensor {
  const op = 'marginRankingLoss';
  checkOptions(op, options, marginOptions);
  requireRanks(op, a, b, target);
  const { margin = 0, reduction = 'mean' } = options;
  return scope(() => reduceLosses(clamp(add(mul(neg(target), sub(a, b)), margin), 0), reduction));
}

/** Computes the input where the target is 1, and max(0, margin − input) where it is −1. Shapes are broadcast. */
export function hingeEmbeddingLoss(input: Tensor, target: Tensor, options: MarginOptions = {}): Tensor {
  const op = 'hingeEmbeddingLoss';
  const raised = recast('float32', [input, target], (x, y) => hingeEmbeddingLoss(x!, y!, options));
  if (raised) return raised;
  checkOptions(op, options, marginOptions);
  requireFloat(op, input);
  requireTensor(op, target);
  const { margin = 1, reduction = 'mean' } = options;
  return scope(() => {
    const apart = where(eq(target, 1), 0, clamp(sub(margin, input), 0));
    const alike = where(eq(target, -1), 0, input);
    return reduceLosses(add(alike, apart), reduction);
  });
}

/** Options of pairwiseDistance(). */
export interface PairwiseDistanceOptions {
  /** The order of the norm. Default 2. */
  readonly p?: number;
  /** Added to each difference. Default 1e-6. */
  readonly eps?: number;
  /** Whether the last dimension stays, with size 1. Default false. */
  readonly keepDim?: boolean;
}

export const pairwiseDistanceOptions = optionChecks<PairwiseDistanceOptions>({
  p: { expected: 'a number', fits: (value) => typeof value === 'number' && !Number.isNaN(value) },
  eps: finite,
  keepDim: flag,
});

/** Returns the norm of a − b + eps along the last dimension. Shapes are broadcast. */
export function pairwiseDistance(a: Tensor, b: Tensor, options: PairwiseDistanceOptions = {}): Tensor {
  const op = 'pairwiseDistance';
  checkOptions(op, options, pairwiseDistanceOptions);
  requireTensor(op, a);
  requireTensor(op, b);
  const { p = 2, eps = 1e-6, keepDim = false } = options;
  checkNumber(op, 'p', p);
  return scope(() => norm(add(sub(a, b), eps), -1, { p, keepDim }));
}

/** Options of tripletMarginLoss(). */
export interface TripletMarginOptions extends LossOptions {
  /** Above 0. Default 1. */
  readonly margin?: number;
  /** The order of the norm. Default 2. */
  readonly p?: number;
  /** Default 1e-6. */
  readonly eps?: number;
  /** Whether the negative may be compared with the positive instead of the anchor, if it is nearer. Default false. */
  readonly swap?: boolean;
}

const tripletChecks = { ...lossChecks, margin: positive, swap: flag };
export const tripletMarginOptions = optionChecks<TripletMarginOptions>({
  ...tripletChecks,
  p: { expected: 'a number', fits: (value) => typeof value === 'number' && !Number.isNaN(value) },
  eps: finite,
});

/** Computes max(0, margin + distance to the positive − distance to the negative), with pairwiseDistance(). */
export function tripletMarginLoss(
  anchor: Tensor,
  near: Tensor,
  far: Tensor,
  options: TripletMarginOptions = {},
): Tensor {
  const op = 'tripletMarginLoss';
  checkOptions(op, options, tripletMarginOptions);
  requireRanks(op, anchor, near, far);
  const { p = 2, eps = 1e-6, ...rest } = options;
  return triplet(op, anchor, near, far, rest, (a, b) => pairwiseDistance(a, b, { p, eps }));
}

/** Options of tripletMarginWithDistanceLoss(). */
export interface TripletMarginWithDistanceOptions extends Omit<TripletMarginOptions, 'p' | 'eps'> {
  /** Default pairwiseDistance. */
  readonly distanceFunction?: (a: Tensor, b: Tensor) => Tensor;
}

export const tripletMarginWithDistanceOptions = optionChecks<TripletMarginWithDistanceOptions>({
  ...tripletChecks,
  distanceFunction: aFunction,
});

/** Computes max(0, margin + distance to the positive − distance to the negative), with a distance of the caller. */
export function tripletMarginWithDistanceLoss(
  anchor: Tensor,
  near: Tensor,
  far: Tensor,
  options: TripletMarginWithDistanceOptions = {},
): Tensor {
  const op = 'tripletMarginWithDistanceLoss';
  checkOptions(op, options, tripletMarginWithDistanceOptions);
  requireRanks(op, anchor, near, far);
  const { distanceFunction = (a: Tensor, b: Tensor) => pairwiseDistance(a, b), ...rest } = options;
  return triplet(op, anchor, near, far, rest, distanceFunction);
}

function triplet(
  op: string,
  anchor: Tensor,
  near: Tensor,
  far: Tensor,
  options: Pick<TripletMarginOptions, 'margin' | 'swap' | 'reduction'>,
  distance: (a: Tensor, b: Tensor) => Tensor,
): Tensor {
  const raised = recast('float32', [anchor, near, far], (a, b, c) =>
    triplet(op, a!, b!, c!, options, distance),
  );
  if (raised) return raised;
  const { margin = 1, swap = false, reduction = 'mean' } = options;
  return scope(() => {
    const toNear = distance(anchor, near);
    const toFar = distance(anchor, far);
    const apart = swap ? minimum(toFar, distance(near, far)) : toFar;
    return reduceLosses(clamp(sub(add(toNear, margin), apart), 0), reduction);
  });
}
