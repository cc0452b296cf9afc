// Losses. Labels are class numbers, int32 or int64; each is checked before a kernel sees it.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import { scope } from '../context.ts';
import type { Device } from '../device.ts';
import { type DType, isFloat } from '../dtype.ts';
import { badLabelDtype, badLabels, labelOutOfRange } from '../errors.ts';
import type { Strided } from '../kernels.ts';
import { withStrides } from '../layout.ts';
import { sameShape } from '../shape.ts';
import { allocate, type Storage } from '../storage.ts';
import { created, empty, type Tensor } from '../tensor.ts';
import { recast } from './autocast.ts';
import { contiguous, inFloat32, needsFloat32, requireFloat } from './convert.ts';
import { jointDevice } from './joint-device.ts';
import { checkIndices } from './lookup.ts';
import { defaultIgnoreIndex, softCrossEntropy, weightedNll } from './loss-weighted.ts';
import { checkedReduction, type LossOptions, type Reduction } from './reduction.ts';
import { logSoftmax } from './softmax.ts';

export interface ClassLossOptions extends LossOptions {
  /** What a class counts [classes], for 'mean' too, which then divides by the sum of what the labels count. Default 1. */
  readonly weight?: Tensor;
  /** Rows with this label count nothing. Default −100. */
  readonly ignoreIndex?: number;
}

export interface CrossEntropyOptions extends ClassLossOptions {
  /** The share of each label that is spread evenly over all classes. Default 0. */
  readonly labelSmoothing?: number;
}

/** Whether every row counts alike, so that the kernel for that can be used. */
function isPlain(a: Tensor, labels: Tensor, options: CrossEntropyOptions): boolean {
  if (options.weight || options.labelSmoothing || a.rank !== 2 || labels.rank !== 1) return false;
  const ignored = options.ignoreIndex ?? defaultIgnoreIndex;
  const values = labels.dataSync();
  if (values instanceof BigInt64Array) return !values.includes(BigInt(ignored));
  return !(values as Int32Array).includes(ignored);
}

function checkLabels(op: string, a: Tensor, labels: Tensor): void {
  requireFloat(op, a);
  if (labels.dtype !== 'int32' && labels.dtype !== 'int64') throw badLabelDtype(op, labels.dtype);
  const fits = a.rank >= 2 && sameShape(labels.shape, [a.shape[0]!, ...a.shape.slice(2)]);
  if (!fits) throw badLabels(op, a.shape, labels.shape);
}

/** Scores [rows, classes] and their labels, dense, with everything that the losses of rows share. */
class Rows {
  readonly #labels: Tensor;
  readonly #dtype: DType;
  readonly #device: Device;
  readonly #reduction: Reduction;
  readonly count: number;
  readonly classes: number;
  readonly labels: Strided;
  readonly storage: Storage;

  constructor(op: string, scores: Tensor, labels: Tensor, reduction: Reduction) {
    this.#labels = contiguous(labels);
    this.#dtype = scores.dtype;
    this.#device = jointDevice(op, scores, labels);
    this.#reduction = reduction;
    [this.count, this.classes] = scores.shape as [number, number];
    checkIndices(op, this.#labels, this.classes, labelOutOfRange);
    this.labels = this.#labels.strided;
    this.storage = this.#labels.storage;
  }

  /** Gives back what was copied for kernels; the tape keeps what it needs. */
  done(labels: Tensor): void {
    if (this.#labels !== labels) this.#labels.dispose();
  }

  loss(logProbs: Strided): Tensor {
    const losses = allocate(this.#dtype, this.count, this.#device);
    kernels().nll(losses.dense, logProbs, this.labels, this.count, this.classes);
    if (this.#reduction === 'none') return created(losses, [this.count]);
    const out = empty(this.#dtype, [], this.#device);
    kernels().reduce(this.#reduction, [this.count], withStrides(out.strided, [0]), losses.dense);
    losses.release();
    return out;
  }

  /** Writes the gradient of the log-probabilities, given that of the loss. */
  gradient(into: Strided, grad: Storage): void {
    if (this.#reduction === 'none') {
      kernels().nllGrad(into, grad.dense, this.labels, this.count, this.classes);
      return;
    }
    const perRow = allocate(this.#dtype, this.count, this.#device);
    const scale = this.#reduction === 'mean' ? 1 / this.count : 1;
    kernels().map('mul', this.#dtype, [this.count], perRow.dense, withStrides(grad.dense, [0]), scale);
    kernels().nllGrad(into, perRow.dense, this.labels, this.count, this.classes);
    perRow.release();
  }
}

/**
 * Negative log-likelihood of log-probabilities [rows, classes] or [rows, classes, …] against labels [rows] or [rows, …].
 */
export function nllLoss(logProbs: Tensor, labels: Tensor, options: ClassLossOptions = {}): Tensor {
  const raised = recast('float32', [logProbs], (wide) => nllLoss(wide!, labels, options));
  if (raised) return raised;
  checkLabels('nllLoss', logProbs, labels);
  const reduction = checkedReduction('nllLoss', options);
  if (!isPlain(logProbs, labels, options))
    return weightedNll('nllLoss', logProbs, labels, reduction, options);
  if (needsFloat32(logProbs)) return inFloat32(logProbs, (wide) => nllLoss(wide, labels, options));
  const rows = new Rows('nllLoss', logProbs, labels, reduction);
  const dense = contiguous(logProbs);
  const out = rows.loss(dense.strided);
  if (isRecording(dense)) {
    const target = dense.target!;
    record('nllLoss', out, [target], [rows.storage], (grad) => {
      const into = target.begin();
      rows.gradient(into.dense, grad);
      target.end(into);
    });
  }
  if (dense !== logProbs) dense.dispose();
  rows.done(labels);
  return out;
}

/**
 * Cross entropy of logits [rows, classes] or [rows, classes, …] against labels [rows] or [rows, …]: nllLoss of logSoftmax.
 * Floating labels in the shape of the logits are probabilities of classes.
 */
export function crossEntropy(logits: Tensor, labels: Tensor, options: CrossEntropyOptions = {}): Tensor {
  const raised = recast('float32', [logits], (wide) => crossEntropy(wide!, labels, options));
  if (raised) return raised;
  const reduction = checkedReduction('crossEntropy', options);
  if (isFloat(labels.dtype) && sameShape(labels.shape, logits.shape))
    return softCrossEntropy(logits, labels, reduction, options);
  checkLabels('crossEntropy', logits, labels);
  if (!isPlain(logits, labels, options)) {
    return scope(() => weightedNll('crossEntropy', logSoftmax(logits, 1), labels, reduction, options));
  }
  if (needsFloat32(logits)) return inFloat32(logits, (wide) => crossEntropy(wide, labels, options));
  const rows = new Rows('crossEntropy', logits, labels, reduction);
  const dense = contiguous(logits);
  const { dtype, count, device } = dense;
  const logProbs = allocate(dtype, count, device);
  kernels().logSoftmax(logProbs.dense, dense.strided, rows.count, rows.classes);
  const out = rows.loss(logProbs.dense);
  if (isRecording(dense)) {
    const target = dense.target!;
    record('crossEntropy', out, [target], [logProbs, rows.storage], (grad) => {
      const direct = allocate(dtype, count, device);
      rows.gradient(direct.dense, grad);
      const into = target.begin();
      kernels().logSoftmaxGrad(into.dense, direct.dense, logProbs.dense, rows.count, rows.classes);
      target.end(into);
      direct.release();
    });
  }
  logProbs.release();
  if (dense !== logits) dense.dispose();
  rows.done(labels);
  return out;
}
