// Losses. Labels are class numbers, int32 or int64; each is checked before a kernel sees it.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import { badLabelDtype, badLabels, badReduction, labelOutOfRange, lossShapes } from '../errors.ts';
import type { Memory } from '../kernels.ts';
import { sameShape } from '../shape.ts';
import { allocate, type Storage } from '../storage.ts';
import { created, empty, type Tensor } from '../tensor.ts';
import { sub } from './binary.ts';
import { requireFloat } from './convert.ts';
import { mean, sum } from './reduce.ts';
import { square } from './unary.ts';

export type Reduction = 'mean' | 'sum' | 'none';

export interface LossOptions {
  /** 'mean' (default) over the examples, 'sum', or 'none' for one loss per example. */
  readonly reduction?: Reduction;
}

function checkedReduction(op: string, { reduction = 'mean' }: LossOptions): Reduction {
  if (reduction === 'mean' || reduction === 'sum' || reduction === 'none') return reduction;
  throw badReduction(op, reduction);
}

function checkLabels(op: string, a: Tensor, labels: Tensor): void {
  requireFloat(op, a);
  if (labels.dtype === 'float32') throw badLabelDtype(op, labels.dtype);
  const rows = a.shape[0];
  const classes = a.shape[1];
  if (a.rank !== 2 || labels.rank !== 1 || labels.shape[0] !== rows)
    throw badLabels(op, a.shape, labels.shape);
  const { host } = labels.memory;
  // int64 as two halves, low first, so that no BigInt is made per label.
  const isWide = host instanceof BigInt64Array;
  const words = isWide ? new Int32Array(host.buffer, host.byteOffset, host.length * 2) : host;
  const step = isWide ? 2 : 1;
  for (let r = 0; r < rows!; r++) {
    const label = words[r * step] as number;
    if (label < 0 || label >= classes! || (isWide && words[r * 2 + 1] !== 0)) {
      throw labelOutOfRange(op, host[r]!, r, classes!);
    }
  }
}

/** The gradient of each row's loss, given that of the reduced loss. */
function rowGradients(grad: Storage, rows: number, reduction: Reduction): Storage {
  if (reduction === 'none') return grad.retain();
  const out = allocate('float32', rows);
  kernels().strided(out.memory, grad.memory, [rows], [0], 0);
  if (reduction === 'mean') kernels().affine(out.memory, out.memory, 1 / rows, 0);
  return out;
}

function nllForward(logProbs: Memory, labels: Tensor, classes: number, reduction: Reduction): Tensor {
  const k = kernels();
  const rows = labels.count;
  const losses = allocate('float32', rows);
  k.nll(losses.memory, logProbs, labels.memory, rows, classes);
  if (reduction === 'none') return created(losses, labels.shape);
  const out = empty('float32', []);
  k.reduce('sum', out.memory, losses.memory, 1, rows, 1);
  if (reduction === 'mean') k.affine(out.memory, out.memory, 1 / rows, 0);
  losses.release();
  return out;
}

function nllGradient(
  into: Memory,
  grad: Storage,
  labels: Memory,
  classes: number,
  reduction: Reduction,
): void {
  const perRow = rowGradients(grad, labels.count, reduction);
  kernels().nllGrad(into, perRow.memory, labels, labels.count, classes);
  perRow.release();
}

/** Negative log-likelihood of log-probabilities [rows, classes] against labels [rows]. */
export function nllLoss(logProbs: Tensor, labels: Tensor, options: LossOptions = {}): Tensor {
  checkLabels('nllLoss', logProbs, labels);
  const reduction = checkedReduction('nllLoss', options);
  const classes = logProbs.shape[1]!;
  const out = nllForward(logProbs.memory, labels, classes, reduction);
  if (!isRecording(logProbs)) return out;
  const target = logProbs.target!;
  const wanted = labels.memory;
  return record('nllLoss', out, [target], [labels.storage], (grad) => {
    const into = target.begin();
    nllGradient(into.memory, grad, wanted, classes, reduction);
    target.end(into);
  });
}

/** Cross entropy of logits [rows, classes] against labels [rows]: nllLoss of logSoftmax, in one step. */
export function crossEntropy(logits: Tensor, labels: Tensor, options: LossOptions = {}): Tensor {
  checkLabels('crossEntropy', logits, labels);
  const reduction = checkedReduction('crossEntropy', options);
  const rows = labels.count;
  const classes = logits.shape[1]!;
  const logProbs = allocate('float32', logits.count);
  kernels().logSoftmax(logProbs.memory, logits.memory, rows, classes);
  const out = nllForward(logProbs.memory, labels, classes, reduction);
  if (isRecording(logits)) {
    const target = logits.target!;
    const wanted = labels.memory;
    record('crossEntropy', out, [target], [logProbs, labels.storage], (grad) => {
      const direct = allocate('float32', rows * classes);
      nllGradient(direct.memory, grad, wanted, classes, reduction);
      const into = target.begin();
      kernels().logSoftmaxGrad(into.memory, direct.memory, logProbs.memory, rows, classes);
      target.end(into);
      direct.release();
    });
  }
  logProbs.release();
  return out;
}

/** Mean of squared differences of two tensors of one shape. */
export function mseLoss(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  if (!sameShape(prediction.shape, target.shape)) throw lossShapes('mseLoss', prediction.shape, target.shape);
  const reduction = checkedReduction('mseLoss', options);
  const difference = sub(prediction, target);
  const squares = square(difference);
  difference.dispose();
  if (reduction === 'none') return squares;
  const out = reduction === 'sum' ? sum(squares) : mean(squares);
  squares.dispose();
  return out;
}
