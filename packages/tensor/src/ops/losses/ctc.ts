// The loss of connectionist temporal classification. It computes on the host, which waits for a copy of tensors on a
// device.
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { badCtc, badCtcLength, blankInTarget } from '../../checks/loss-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag, nonNegativeInteger } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { tensor } from '../../core/creation.ts';
import { isHalf } from '../../core/dtype.ts';
import { withStrides } from '../../core/layout.ts';
import { Tensor } from '../../core/tensor.ts';
import { badOption, labelOutOfRange, needsIndex, needsRank, shown } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { div } from '../elementwise/binary.ts';
import { contiguous, requireFloat, requireOperand, to } from '../elementwise/convert.ts';
import { type LossOptions, lossChecks, reduceLosses } from '../reduce/reduction.ts';
import { reshape, unsqueeze } from '../shape/views.ts';
import { alignmentLoss } from './ctc-alignments.ts';

/** Options of ctcLoss(). */
export interface CtcLossOptions extends LossOptions {
  /** The class that means "no label". Default 0. */
  readonly blank?: number;
  /** Whether infinite losses, of targets that are too long for their frames, become 0, and so do gradients. */
  readonly zeroInfinity?: boolean;
}

export const ctcLossOptions = optionChecks<CtcLossOptions>({
  ...lossChecks,
  blank: nonNegativeInteger,
  zeroInfinity: flag,
});

/** Lengths of sequences: a tensor of integers, or numbers. */
export type Lengths = Tensor | readonly number[] | number;

const op = 'ctcLoss';

/** Returns the elements of an integer tensor as numbers. Waits for a device. */
function numbersOf(a: Tensor): number[] {
  if (a.dtype !== 'int32' && a.dtype !== 'int64') throw needsIndex(op, a.dtype);
  return scope(() => {
    const local = contiguous(to(a, 'cpu'));
    const { memory, offset } = local.strided;
    return Array.from({ length: a.count }, (_, i) =>
      Number((memory.host as ArrayLike<bigint | number>)[offset + i]),
    );
  });
}

/** Returns `count` lengths from 0 to `most`, checked. */
function lengthsOf(name: string, given: Lengths, count: number, most: number): number[] {
  const all = given instanceof Tensor ? numbersOf(given) : typeof given === 'number' ? [given] : given;
  const fits = Array.isArray(all) && all.length === count;
  if (!fits) throw badOption(`${op}: ${name}`, `${count} lengths, one for each sequence`, shown(given));
  for (const [i, length] of all.entries())
    if (!Number.isSafeInteger(length) || length < 0 || length > most)
      throw badCtcLength(name, i, length, most);
  return [...all];
}

/** Returns the labels of each sequence: rows of targets [batch, most], or parts of targets [sum of the lengths]. */
function labelsOf(
  targets: Tensor,
  lengths: readonly number[],
  classes: number,
  blank: number,
): readonly (readonly number[])[] {
  const all = numbersOf(targets);
  let next = 0;
  return lengths.map((length, i) => {
    const start = targets.rank === 2 ? i * targets.shape[1]! : next;
    next += length;
    const own = all.slice(start, start + length);
    for (const [j, label] of own.entries()) {
      if (label < 0 || label >= classes) throw labelOutOfRange(op, label, start + j, classes);
      if (label === blank) throw blankInTarget(blank, start + j);
    }
    return own;
  });
}

/** Computes the loss of each sequence of logProbs [frames, batch, classes], in its dtype. */
function losses(
  logProbs: Tensor,
  labels: readonly (readonly number[])[],
  frames: readonly number[],
  blank: number,
  zeroInfinity: boolean,
): Tensor {
  const [, batch, classes] = logProbs.shape as [number, number, number];
  const { dtype, device } = logProbs;
  return scope(() => {
    const local = contiguous(to(logProbs.detach(), 'cpu'));
    const { memory, offset } = local.strided;
    const values = (memory.host as Float32Array).subarray(offset, offset + local.count);
    const gradient = isRecording(logProbs) ? new Float64Array(local.count) : null;
    const each = labels.map((target, i) => {
      const sequence = { values, start: i * classes, stride: batch * classes, count: frames[i]! };
      const loss = alignmentLoss(sequence, target, blank, classes, gradient);
      if (loss !== Infinity || !zeroInfinity) return loss;
      for (let t = 0; t < sequence.count; t++)
        gradient?.fill(
          0,
          sequence.start + t * sequence.stride,
          sequence.start + t * sequence.stride + classes,
        );
      return 0;
    });
    const out = tensor(each, { dtype, device, shape: [batch] });
    if (gradient === null) return out;
    const slopes = tensor(gradient, { dtype, device, shape: logProbs.shape });
    const target = logProbs.target!;
    const { shape } = logProbs;
    const saved = slopes.strided;
    // Without a second parameter: as in PyTorch, there is no second gradient.
    return record(op, out, [target], [slopes.storage], (grad) => {
      const into = target.begin();
      kernels().map('mul', dtype, shape, into.dense, saved, withStrides(grad.dense, [0, 1, 0]));
      target.end(into);
    });
  });
}

/**
 * Computes −log of the probability that a sequence of frames spells a target, over all alignments, in which labels may
 * repeat and blanks stand between them. logProbs are logarithms of probabilities [frames, batch, classes], or [frames,
 * classes] of one sequence. Targets are int32 or int64: [batch, longest], of which each row counts up to its length, or
 * all targets one after another. 'mean' divides each loss by the length of its target first. Computes on the host, in
 * float64, on CPU and CUDA tensors alike; the gradient is that with respect to logProbs, and there is no second one.
 */
export function ctcLoss(
  logProbs: Tensor,
  targets: Tensor,
  inputLengths: Lengths,
  targetLengths: Lengths,
  options: CtcLossOptions = {},
): Tensor {
  requireFloat(op, logProbs);
  requireOperand(op, 'targets', targets);
  checkOptions(op, options, ctcLossOptions);
  const raised = recast('float32', [logProbs], (wide) =>
    ctcLoss(wide!, targets, inputLengths, targetLengths, options),
  );
  if (raised) return raised;
  const { blank = 0, zeroInfinity = false, reduction = 'mean' } = options;
  if (logProbs.rank !== 2 && logProbs.rank !== 3)
    throw needsRank(`${op}: logProbs`, '[frames, batch, classes] or [frames, classes]', logProbs.shape);
  const isBatched = logProbs.rank === 3;
  const [frames, classes] = [logProbs.shape[0]!, logProbs.shape.at(-1)!];
  const batch = isBatched ? logProbs.shape[1]! : 1;
  if (blank >= classes) throw badOption(`${op}: blank`, `a class from 0 to ${classes - 1}`, shown(blank));
  const isRows = targets.rank === 2 && targets.shape[0] === batch;
  if (!isRows && targets.rank !== 1) throw badCtc(logProbs.shape, targets.shape);
  const most = isRows ? targets.shape[1]! : targets.count;
  const inputs = lengthsOf('inputLengths', inputLengths, batch, frames);
  const lengths = lengthsOf('targetLengths', targetLengths, batch, most);
  const sum = lengths.reduce((a, b) => a + b, 0);
  if (!isRows && sum !== targets.count) throw badCtc(logProbs.shape, targets.shape, sum);
  const labels = labelsOf(targets, lengths, classes, blank);
  return scope(() => {
    const batched = isBatched ? logProbs : unsqueeze(logProbs, 1);
    const wide = isHalf(batched.dtype) ? to(batched, 'float32') : batched;
    const each = losses(wide, labels, inputs, blank, zeroInfinity);
    const divisors = lengths.map((length) => Math.max(1, length));
    const { dtype, device } = wide;
    const scaled =
      reduction === 'mean' ? div(each, tensor(divisors, { dtype, device, shape: [batch] })) : each;
    const out = reduceLosses(isBatched ? scaled : reshape(scaled, []), reduction);
    return to(out, logProbs.dtype);
  });
}
