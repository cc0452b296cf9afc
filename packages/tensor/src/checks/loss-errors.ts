// Errors of losses.
import { type Shape, shapeError, show, TensorError } from '../errors/tensor-error.ts';

export const differentRanks = (op: string, shapes: readonly Shape[]): TensorError =>
  shapeError(
    `${op}: expected tensors with the same number of dimensions, got ${shapes.map(show).join(', ')}.`,
  );

export const badClassScores = (op: string, scores: Shape, target: Shape, expected: string): TensorError =>
  shapeError(
    `${op}: expected scores [batch, classes] or [classes] with ${expected}, got ${show(scores)} and ${show(target)}.`,
  );

export const badVariance = (input: Shape, variance: Shape): TensorError =>
  shapeError(
    `gaussianNllLoss: expected a variance of the shape ${show(input)}, of that shape without the last dimension, or with 1 there, got ${show(variance)}.`,
  );

export const negativeVariance = (): TensorError =>
  new TensorError(
    'ERR_TENSOR_ARGUMENT',
    'gaussianNllLoss: expected variances ≥ 0, got one below 0. Use exp or softplus of what the model returns.',
  );

export const badCtc = (logProbs: Shape, targets: Shape, sum?: number): TensorError =>
  shapeError(
    `ctcLoss: expected targets [batch, longest], or [count] with all targets one after another${sum === undefined ? '' : `, ${sum} labels by targetLengths`}, got ${show(targets)} for logProbs ${show(logProbs)}.`,
  );

export const badCtcLength = (name: string, at: number, length: unknown, most: number): TensorError =>
  new TensorError(
    'ERR_TENSOR_ARGUMENT',
    `ctcLoss: expected ${name} from 0 to ${most}, got ${String(length)} for sequence ${at}.`,
  );

export const blankInTarget = (blank: number, at: number): TensorError =>
  new TensorError(
    'ERR_TENSOR_LABEL',
    `ctcLoss: the target at position ${at} is ${blank}, the blank. Shorten targetLengths, or choose another blank.`,
  );

export const badLinearLoss = (x: Shape, weight: Shape, bias: Shape | null): TensorError =>
  shapeError(
    `linearCrossEntropy: expected x [batch, in] or [in], linearWeight [classes, …, in] and linearBias [classes, …], got ${show(x)}, ${show(weight)}, ${bias ? show(bias) : 'null'}. Only a batch has dimensions between classes and in.`,
  );
