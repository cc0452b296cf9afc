// Losses of log-probabilities of classes. Labels are class numbers, int32 or int64; uint8 is converted. In host memory,
// each label is checked once before a kernel reads it; on a device, the kernel checks it.
import { type GradGraph, graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import type { Strided } from '../../backends/operands.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { scope } from '../../core/context.ts';
import { zeros } from '../../core/creation.ts';
import { type DType, isFloat, isHalf } from '../../core/dtype.ts';
import { withStrides } from '../../core/layout.ts';
import { allocate, type Storage } from '../../core/memory/storage.ts';
import { type Shape, sameShape } from '../../core/shape.ts';
import { created, empty, type Tensor } from '../../core/tensor.ts';
import { denseStorage } from '../../core/tensor-grad.ts';
import type { Device } from '../../device/device.ts';
import { badLabelDtype, badLabels } from '../../errors.ts';
import { inDtypeOf, recast } from '../elementwise/autocast.ts';
import {
  contiguous,
  inFloat32,
  needsFloat32OnCpu,
  requireFloat,
  requireTensor,
  to,
} from '../elementwise/convert.ts';
import { jointDevice } from '../joint-device.ts';
import type { Reduction } from '../reduce/reduction.ts';
import { reshape, unsqueeze } from '../shape/views.ts';
import { type ClassLossOptions, classLossChecks } from './class-options.ts';
import { checkLabelValues } from './label-values.ts';
import { defaultIgnoreIndex, weightedNll } from './loss-weighted.ts';

export const nllLossOptions = optionChecks<ClassLossOptions>(classLossChecks);

/** Returns whether all classes have the same weight and each row has one label: the case with specialised kernels. */
const isPlain = (a: Tensor, options: ClassLossOptions): boolean => !options.weight && a.rank === 2;

export function checkLabels(op: string, a: Tensor, labels: Tensor): void {
  requireFloat(op, a);
  requireTensor(op, labels);
  if (labels.dtype !== 'int32' && labels.dtype !== 'int64') throw badLabelDtype(op, labels.dtype);
  const fits = a.rank >= 2 && sameShape(labels.shape, [a.shape[0]!, ...a.shape.slice(2)]);
  if (!fits) throw badLabels(op, a.shape, labels.shape);
}

/**
 * Computes a loss of scores [classes], which have one label, [] or [1], or probabilities [classes]: as a batch of one,
 * whose dimension the result lacks.
 */
export function ofOneRow(
  op: string,
  a: Tensor,
  labels: Tensor,
  loss: (row: Tensor, labels: Tensor) => Tensor,
): Tensor {
  const isSoft = isFloat(labels.dtype) && sameShape(labels.shape, a.shape);
  if (!isSoft && (labels.rank > 1 || labels.count !== 1)) throw badLabels(op, a.shape, labels.shape);
  return scope(() =>
    reshape(loss(unsqueeze(a, 0), isSoft ? unsqueeze(labels, 0) : reshape(labels, [1])), []),
  );
}

/** The rows that are not ignored: 1 or 0 for each row, and their number. */
interface Counted {
  readonly rows: Storage;
  readonly total: Storage;
}

/** Holds dense labels of scores [rows, classes] and computes the losses of the rows. */
class Rows {
  /** The dtype of losses and counts: float32 for scores in 16 bits. */
  readonly #dtype: DType;
  readonly #device: Device;
  readonly #reduction: Reduction;
  readonly count: number;
  readonly classes: number;
  /** The class of each row; 0 where the label is ignored. */
  readonly #labels: Storage;
  /** Null if no row is ignored. */
  readonly #counted: Counted | null;

  constructor(op: string, scores: Tensor, labels: Tensor, reduction: Reduction, ignored: number) {
    this.#dtype = isHalf(scores.dtype) ? 'float32' : scores.dtype;
    this.#device = jointDevice(op, scores, labels);
    this.#reduction = reduction;
    [this.count, this.classes] = scores.shape as [number, number];
    const dense = denseStorage(labels);
    // Reading labels on a device would wait for it. So rows may be ignored there, and a label that is no class is
    // reported at the next wait.
    let mayIgnore = true;
    try {
      if (this.#device === 'cpu') mayIgnore = checkLabelValues(op, dense.memory, this.classes, ignored);
    } catch (error) {
      dense.release();
      throw error;
    }
    this.#counted = mayIgnore ? this.#count(dense, ignored) : null;
    this.#labels = this.#counted === null ? dense : this.#known(dense, this.#counted);
  }

  #count(labels: Storage, ignored: number): Counted {
    const rows = this.#perRow();
    const total = allocate(this.#dtype, 1, this.#device);
    kernels().map('ne', labels.memory.dtype, [this.count], rows.dense, labels.dense, ignored);
    kernels().reduce('sum', [this.count], withStrides(total.dense, [0]), rows.dense);
    return { rows, total };
  }

  #known(labels: Storage, { rows }: Counted): Storage {
    const { dtype } = labels.memory;
    const known = allocate(dtype, this.count, this.#device);
    kernels().map('where', dtype, [this.count], known.dense, rows.dense, labels.dense, 0);
    labels.release();
    return known;
  }

  #perRow(): Storage {
    return allocate(this.#dtype, this.count, this.#device);
  }

  get #sizes(): { readonly rows: number; readonly cols: number } {
    return { rows: this.count, cols: this.classes };
  }

  /** The memory that the gradient reads. */
  get saved(): Storage[] {
    const counted = this.#counted;
    return counted === null ? [this.#labels] : [this.#labels, counted.rows, counted.total];
  }

  /** Releases the labels; the tape holds its own references. */
  done(): void {
    for (const storage of this.saved) storage.release();
  }

  loss(logProbs: Strided): Tensor {
    const counted = this.#counted;
    const losses = this.#perRow();
    kernels().nll({ logProbs, losses: losses.dense, labels: this.#labels.dense }, this.#sizes);
    if (counted !== null)
      kernels().map('where', this.#dtype, [this.count], losses.dense, counted.rows.dense, losses.dense, 0);
    if (this.#reduction === 'none') return created(losses, [this.count]);
    const out = empty(this.#dtype, [], this.#device);
    const isMean = this.#reduction === 'mean';
    const reduction = isMean && counted === null ? 'mean' : 'sum';
    kernels().reduce(reduction, [this.count], withStrides(out.strided, [0]), losses.dense);
    if (isMean && counted !== null)
      kernels().map('div', this.#dtype, [], out.strided, out.strided, counted.total.dense);
    losses.release();
    return out;
  }

  /** Returns the result of gradient() as a tensor. It is linear in the gradient of the loss. */
  gradientTensor(graph: GradGraph): Tensor {
    const saved = (storage: Storage, shape: Shape): Tensor => graph.saved(storage.dense, shape, null);
    const counted = this.#counted;
    const labels = saved(this.#labels, [this.count]).to('int64').unsqueeze(1);
    let perRow = graph.grad.neg().expand([this.count]);
    if (counted !== null) perRow = perRow.mul(saved(counted.rows, [this.count]));
    // If all rows are ignored, the total is 0.
    const total = counted === null ? this.count : saved(counted.total, []).clamp(1);
    if (this.#reduction === 'mean') perRow = perRow.div(total);
    const { dtype, device } = perRow;
    return zeros([this.count, this.classes], { dtype, device }).scatter(1, labels, perRow.unsqueeze(1));
  }

  /** Writes the gradient of the log-probabilities, given the gradient of the loss. */
  gradient(into: Strided, grad: Storage): void {
    const counted = this.#counted;
    const shape = [this.count];
    const perRow = this.#perRow();
    const own = this.#reduction === 'none' ? grad.dense : withStrides(grad.dense, [0]);
    kernels().map('mul', this.#dtype, shape, perRow.dense, own, counted === null ? 1 : counted.rows.dense);
    if (this.#reduction === 'mean') {
      const total = counted === null ? this.count : withStrides(counted.total.dense, [0]);
      kernels().map('div', this.#dtype, shape, perRow.dense, perRow.dense, total);
      // If all rows are ignored, the total is 0.
      if (counted !== null)
        kernels().map('where', this.#dtype, shape, perRow.dense, counted.rows.dense, perRow.dense, 0);
    }
    kernels().nllGrad({ gradIn: into, gradLosses: perRow.dense, labels: this.#labels.dense }, this.#sizes);
    perRow.release();
  }
}

/**
 * Computes the negative log-likelihood of log-probabilities [rows, classes] or [rows, classes, …] against
 * labels [rows] or [rows, …]; log-probabilities [classes] have one label.
 */
export function nllLoss(logProbs: Tensor, labels: Tensor, options: ClassLossOptions = {}): Tensor {
  checkOptions('nllLoss', options, nllLossOptions);
  const raised = recast('float32', [logProbs], (wide) => nllLoss(wide!, labels, options));
  if (raised) return raised;
  const op = 'nllLoss';
  requireTensor(op, logProbs);
  requireTensor(op, labels);
  const reduction = options.reduction ?? 'mean';
  if (logProbs.rank === 1)
    return ofOneRow(op, logProbs, labels, (row, label) => nllLoss(row, label, options));
  if (labels.dtype === 'uint8') return scope(() => nllLoss(logProbs, to(labels, 'int64'), options));
  checkLabels(op, logProbs, labels);
  if (!isPlain(logProbs, options)) return weightedNll(logProbs, labels, reduction, options);
  if (needsFloat32OnCpu(logProbs)) return inFloat32(logProbs, (wide) => nllLoss(wide, labels, options));
  const { ignoreIndex = defaultIgnoreIndex } = options;
  const rows = new Rows(op, logProbs, labels, reduction, ignoreIndex);
  const dense = contiguous(logProbs);
  const out = rows.loss(dense.strided);
  if (isRecording(dense)) {
    const target = dense.target!;
    record(op, out, [target], rows.saved, (grad, graph) => {
      if (graph) {
        graphOf(graph).send(target, rows.gradientTensor(graphOf(graph)));
        return;
      }
      const into = target.begin();
      rows.gradient(into.dense, grad);
      target.end(into);
    });
  }
  if (dense !== logProbs) dense.dispose();
  rows.done();
  return inDtypeOf(logProbs.dtype, out);
}
