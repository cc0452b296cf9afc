// Cross entropy of scores of classes, in one kernel forward and one backward. On a device the kernel checks the labels.
import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import type { AttributesFor, OperandsFor } from '../../backends/kernels.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { share } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { isFloat, isHalf } from '../../core/dtype.ts';
import { withStrides } from '../../core/layout.ts';
import { allocate, type Storage } from '../../core/memory/storage.ts';
import { sameShape } from '../../core/shape.ts';
import { created, empty, type Tensor } from '../../core/tensor.ts';
import { denseStorage } from '../../core/tensor-grad.ts';
import { weightGradient } from '../../errors.ts';
import { inDtypeOf, isReadAsFloat32, recast } from '../elementwise/autocast.ts';
import { where } from '../elementwise/choose.ts';
import { contiguous, inFloat32, needsFloat32OnCpu, requireTensor, to } from '../elementwise/convert.ts';
import { jointDevice } from '../joint-device.ts';
import type { Reduction } from '../reduce/reduction.ts';
import { flatten, permute, reshape } from '../shape/views.ts';
import { type CrossEntropyOptions, classLossChecks } from './class-options.ts';
import { checkLabelValues } from './label-values.ts';
import { checkLabels, ofOneRow } from './loss.ts';
import { checkWeight, defaultIgnoreIndex, softCrossEntropy } from './loss-weighted.ts';

export const crossEntropyOptions = optionChecks<CrossEntropyOptions>({
  ...classLossChecks,
  labelSmoothing: share,
});

/**
 * Computes the cross entropy of logits [rows, classes] or [rows, classes, …] against labels [rows] or [rows,
 * …]: nllLoss of logSoftmax. Logits [classes] have one label. Floating labels in the shape of the logits are
 * probabilities of classes. With other labels, a `weight` that requires a gradient throws.
 */
export function crossEntropy(logits: Tensor, labels: Tensor, options: CrossEntropyOptions = {}): Tensor {
  checkOptions('crossEntropy', options, crossEntropyOptions);
  const op = 'crossEntropy';
  requireTensor(op, logits);
  requireTensor(op, labels);
  const isSoft = isFloat(labels.dtype) && sameShape(labels.shape, logits.shape);
  if (isSoft || !isReadAsFloat32(logits)) {
    const raised = recast('float32', [logits], (wide) => crossEntropy(wide!, labels, options));
    if (raised) return raised;
  }
  const reduction = options.reduction ?? 'mean';
  if (logits.rank === 1)
    return ofOneRow(op, logits, labels, (row, label) => crossEntropy(row, label, options));
  if (labels.dtype === 'uint8') return scope(() => crossEntropy(logits, to(labels, 'int64'), options));
  if (isSoft) return softCrossEntropy(logits, labels, reduction, options);
  checkLabels(op, logits, labels);
  const { weight } = options;
  checkWeight(op, weight, logits.shape[1]!);
  if (weight && weight.target !== null && isRecording(weight)) throw weightGradient(op);
  if (needsFloat32OnCpu(logits)) return inFloat32(logits, (wide) => crossEntropy(wide, labels, options));
  if (logits.rank === 2) return inDtypeOf(logits.dtype, ofRows(logits, labels, reduction, options));
  return scope(() => {
    const classesLast = permute(logits, [0, ...logits.shape.slice(2).map((_, d) => d + 2), 1]);
    const rows = reshape(classesLast, [labels.count, logits.shape[1]!]);
    const loss = inDtypeOf(logits.dtype, ofRows(rows, flatten(labels), reduction, options));
    return reduction === 'none' ? reshape(loss, labels.shape) : loss;
  });
}

function ofRows(
  logits: Tensor,
  labels: Tensor,
  reduction: Reduction,
  { weight, labelSmoothing = 0, ignoreIndex = defaultIgnoreIndex }: CrossEntropyOptions,
): Tensor {
  const op = 'crossEntropy';
  const [rows, cols] = logits.shape as readonly [number, number];
  const device = jointDevice(op, logits, labels, weight);
  const classes = denseStorage(labels);
  let mayIgnore = true;
  try {
    if (device === 'cpu') mayIgnore = checkLabelValues(op, classes.memory, cols, ignoreIndex);
  } catch (error) {
    classes.release();
    throw error;
  }
  const dtype = isHalf(logits.dtype) ? 'float32' : logits.dtype; // of all but the scores
  const scores = contiguous(logits);
  const typed = weight && to(weight, dtype);
  const weights = typed ? denseStorage(typed) : null;
  const kept = allocate(dtype, 2 * rows, device);
  const losses = allocate(dtype, rows, device);
  const counts = reduction === 'mean' && (mayIgnore || weights) ? allocate(dtype, rows, device) : null;
  const operands = {
    scores: scores.strided,
    labels: classes.dense,
    weight: weights?.dense ?? null,
    kept: kept.dense,
    losses: losses.dense,
    counts: counts?.dense ?? null,
  };
  const sizes = { rows, cols, ignoreIndex, smoothing: labelSmoothing, isPerRow: reduction === 'none' };
  kernels().crossEntropy(operands, sizes);
  const total = counts && summed(counts, rows);
  const out = reduced(losses, rows, reduction, total);
  if (isRecording(scores)) {
    const divisor = total ?? (reduction === 'mean' ? rows : 1);
    const saved = [scores.storage, classes, kept];
    if (weights) saved.push(weights);
    if (total) saved.push(total);
    recordRows(out, scores, saved, divisor, operands, sizes);
  }
  for (const storage of [classes, kept, losses, weights, counts, total]) storage?.release();
  if (scores !== logits) scores.dispose();
  if (typed !== weight) typed?.dispose();
  return out;
}

// A separate function, so that the variables which its closure captures are allocated only when it runs.
function recordRows(
  out: Tensor,
  scores: Tensor,
  saved: Storage[],
  divisor: Storage | number,
  { scores: a, labels, weight, kept }: OperandsFor<'crossEntropy'>,
  sizes: AttributesFor<'crossEntropyGrad'>,
): void {
  const target = scores.target!;
  const { rows, cols, ignoreIndex, smoothing, isPerRow } = sizes;
  const { dtype } = kept.memory;
  record('crossEntropy', out, [target], saved, (grad, graph) => {
    if (graph) {
      const own = graphOf(graph);
      own.through([{ strided: a, shape: [rows, cols], target }], (scores) => {
        const classes = own.saved(labels, [rows], null).to('int64');
        const isCounted = classes.ne(ignoreIndex);
        const chosen = classes.maskedFill(isCounted.logicalNot(), 0).unsqueeze(1);
        const logProbs = scores!.to(dtype).logSoftmax(-1);
        const weighted = weight ? logProbs.mul(own.saved(weight, [cols], null)) : logProbs;
        const ofLabels = weighted
          .gather(1, chosen)
          .squeeze(1)
          .mul(smoothing - 1);
        const ofAll = weighted.sum(-1).mul(-smoothing / cols);
        const losses = where(isCounted, ofLabels.add(ofAll), 0);
        if (isPerRow) return losses;
        const total = losses.sum();
        return total.div(typeof divisor === 'number' ? divisor : own.saved(divisor.dense, [], null));
      });
      return;
    }
    const into = target.begin();
    kernels().crossEntropyGrad(
      {
        scores: a,
        labels,
        weight,
        kept,
        gradScores: into.dense,
        grad: grad.dense,
        divisor: typeof divisor === 'number' ? divisor : divisor.dense,
      },
      sizes,
    );
    target.end(into);
  });
}

function summed(values: Storage, count: number): Storage {
  const total = allocate(values.memory.dtype, 1, values.memory.device);
  kernels().reduce('sum', [count], withStrides(total.dense, [0]), values.dense);
  return total;
}

/** Reduces the losses of rows to the result. `total` is the divisor of a mean, or null if every row has weight 1. */
function reduced(losses: Storage, rows: number, reduction: Reduction, total: Storage | null): Tensor {
  if (reduction === 'none') return created(losses.retain(), [rows]);
  const { dtype, device } = losses.memory;
  const out = empty(dtype, [], device);
  const how = reduction === 'mean' && total === null ? 'mean' : 'sum';
  kernels().reduce(how, [rows], withStrides(out.strided, [0]), losses.dense);
  if (total !== null) kernels().map('div', dtype, [], out.strided, out.strided, total.dense);
  return out;
}
