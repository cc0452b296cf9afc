// Losses with more structure than a comparison of two tensors, as modules.
import { checkOptions, optionChecks } from '../../../checks/options.ts';
import { anything, atLeastOne, checkValue, flag, positive } from '../../../checks/value-checks.ts';
import { scope } from '../../../core/context.ts';
import { zeros } from '../../../core/creation.ts';
import { countOf } from '../../../core/shape.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { badLabels, badOption, labelOutOfRange, needsRank, shown } from '../../../errors.ts';
import {
  add,
  any,
  argmax,
  cat,
  gather,
  ge,
  indexAdd,
  indexPut,
  indexSelect,
  logicalAnd,
  logSoftmax,
  lt,
  max,
  min,
  narrow,
  neg,
  nonzero,
  reshape,
  squeeze,
  sub,
  to,
  unsqueeze,
  where,
} from '../../../ops/index.ts';
import type { CrossEntropyOptions } from '../../../ops/losses/class-options.ts';
import { type CtcLossOptions, ctcLoss, ctcLossOptions, type Lengths } from '../../../ops/losses/ctc.ts';
import { linearCrossEntropy, linearCrossEntropyChecks } from '../../../ops/losses/linear-cross-entropy.ts';
import { buffer } from '../../buffer.ts';
import { declareFields } from '../../fields.ts';
import { Module } from '../../module.ts';
import { ModuleList, Sequential } from '../containers.ts';
import { Linear } from '../linear.ts';

/** Layer of ctcLoss(). */
export class CTCLoss extends Module {
  /** Options of ctcLoss(), as they were given. */
  readonly options: CtcLossOptions;

  constructor(options: CtcLossOptions = {}) {
    super();
    checkOptions('CTCLoss', options, ctcLossOptions);
    this.options = options;
  }

  /** Takes log probabilities [frames, batch, classes], targets, and lengths of both; returns the reduced loss. */
  forward(logProbs: Tensor, targets: Tensor, inputLengths: Lengths, targetLengths: Lengths): Tensor {
    return ctcLoss(logProbs, targets, inputLengths, targetLengths, this.options);
  }
}

/** Options of LinearCrossEntropyLoss. */
export interface LinearCrossEntropyLossOptions extends CrossEntropyOptions {
  /** Sizes of the dimensions of the loss behind the classes. Default: none. */
  readonly outFeatures?: readonly number[];
  /** Default false. */
  readonly bias?: boolean;
}

const linearLossOptions = optionChecks<LinearCrossEntropyLossOptions>({
  ...linearCrossEntropyChecks,
  outFeatures: {
    expected: 'a list of integers ≥ 1',
    fits: (value) => Array.isArray(value) && value.every(atLeastOne.fits),
  },
  bias: flag,
});

/** Layer of linearCrossEntropy(), with the linear layer as `linear`. */
export class LinearCrossEntropyLoss extends Module {
  /** Number of classes. */
  readonly numClasses: number;
  /** Sizes of the dimensions of the loss behind the classes. */
  readonly outFeatures: readonly number[];
  /** The layer that computes the scores of the classes. */
  readonly linear: Linear;
  /** Weight of each class, a buffer of this module; null without. */
  readonly weight: Tensor | null;
  /** Options of the loss, without the weight. */
  readonly options: CrossEntropyOptions;

  constructor(inFeatures: number, numClasses: number, options: LinearCrossEntropyLossOptions = {}) {
    super();
    checkOptions('LinearCrossEntropyLoss', options, linearLossOptions);
    checkValue('LinearCrossEntropyLoss: inFeatures', inFeatures, atLeastOne);
    checkValue('LinearCrossEntropyLoss: numClasses', numClasses, atLeastOne);
    const { outFeatures = [], bias = false, weight = null, ...rest } = options;
    this.numClasses = numClasses;
    this.outFeatures = [...outFeatures];
    this.linear = new Linear(inFeatures, numClasses * countOf(outFeatures), { bias });
    this.weight = weight && buffer(weight);
    declareFields(this, { weight: 'buffer' });
    this.options = rest;
  }

  /** Takes [batch, inFeatures] and labels or probabilities; returns the reduced loss. */
  forward(input: Tensor, target: Tensor): Tensor {
    const space = [this.numClasses, ...this.outFeatures];
    const { weight, bias } = this.linear;
    return scope(() =>
      linearCrossEntropy(input, reshape(weight, [...space, weight.shape[1]!]), target, {
        ...this.options,
        ...(this.weight === null ? {} : { weight: this.weight }),
        linearBias: bias && reshape(bias, space),
      }),
    );
  }
}

/** Options of AdaptiveLogSoftmaxWithLoss. */
export interface AdaptiveLogSoftmaxOptions {
  /** The projection of tail cluster i = 0, 1, … has ⌊inFeatures / divValue^(i + 1)⌋ features. Default 4. */
  readonly divValue?: number;
  /** Whether the scores of the head have a bias. Default false. */
  readonly headBias?: boolean;
}

const adaptiveOptions = optionChecks<AdaptiveLogSoftmaxOptions>({ divValue: positive, headBias: flag });
const adaptive = 'AdaptiveLogSoftmaxWithLoss';

/**
 * Softmax over many classes, sorted from frequent to rare ones, whose rare ones are clusters with narrower layers
 * (Grave et al., 2017). The head has scores of the classes below the first of `cutoffs`, and of each cluster.
 */
export class AdaptiveLogSoftmaxWithLoss extends Module {
  /** Number of classes. */
  readonly nClasses: number;
  /** The first class of each cluster, and the number of classes. */
  readonly cutoffs: readonly number[];
  /** Scores of the frequent classes and of each cluster. */
  readonly head: Linear;
  /** Scores of the classes in each cluster. */
  readonly tail: ModuleList<Sequential>;

  constructor(
    inFeatures: number,
    nClasses: number,
    cutoffs: readonly number[],
    options: AdaptiveLogSoftmaxOptions = {},
  ) {
    super();
    checkValue(`${adaptive}: inFeatures`, inFeatures, atLeastOne);
    checkValue(`${adaptive}: nClasses`, nClasses, atLeastOne);
    checkOptions(adaptive, options, adaptiveOptions);
    checkValue(`${adaptive}: cutoffs`, cutoffs, anything);
    const { divValue = 4, headBias = false } = options;
    const isRising =
      Array.isArray(cutoffs) &&
      cutoffs.length > 0 &&
      cutoffs.every((cutoff, i) => Number.isSafeInteger(cutoff) && cutoff > (cutoffs[i - 1] ?? 0)) &&
      cutoffs.at(-1)! < nClasses;
    if (!isRising)
      throw badOption(`${adaptive}: cutoffs`, `rising integers from 1 to ${nClasses - 1}`, shown(cutoffs));
    this.nClasses = nClasses;
    this.cutoffs = [...cutoffs, nClasses];
    this.head = new Linear(inFeatures, cutoffs[0]! + cutoffs.length, { bias: headBias });
    this.tail = new ModuleList(
      cutoffs.map((cutoff, i) => {
        const width = Math.floor(inFeatures / divValue ** (i + 1));
        if (width < 1)
          throw badOption(
            `${adaptive}: divValue`,
            `a number that leaves a width of cluster ${i}`,
            shown(divValue),
          );
        return new Sequential(
          new Linear(inFeatures, width, { bias: false }),
          new Linear(width, this.cutoffs[i + 1]! - cutoff, { bias: false }),
        );
      }),
    );
  }

  /** Returns the log probability of the target of each row, and the mean of their negatives. Waits for a device. */
  forward(input: Tensor, target: Tensor): { output: Tensor; loss: Tensor } {
    const isBatched = target.rank > 0;
    if (
      target.rank > 1 ||
      input.rank !== target.rank + 1 ||
      (isBatched && input.shape[0] !== target.shape[0])
    )
      throw badLabels(adaptive, input.shape, target.shape);
    return scope(() => {
      const [rows, labels] = isBatched ? [input, target] : [unsqueeze(input, 0), unsqueeze(target, 0)];
      this.#checkLabels(labels);
      const [count] = labels.shape as [number];
      const short = this.cutoffs[0]!;
      let chosen = labels;
      let output = zeros([count], { dtype: input.dtype, device: input.device });
      for (const [i, cluster] of [...this.tail].entries()) {
        const [first, end] = [this.cutoffs[i]!, this.cutoffs[i + 1]!];
        const isInside = logicalAnd(ge(labels, first), lt(labels, end));
        const positions = squeeze(nonzero(isInside), 1);
        if (positions.count === 0) continue;
        chosen = where(isInside, short + i, chosen);
        const own = unsqueeze(sub(indexSelect(labels, 0, positions), first), 1);
        const scores = logSoftmax(cluster.forward(indexSelect(rows, 0, positions)), 1);
        output = indexAdd(output, 0, positions, squeeze(gather(scores, 1, own), 1));
      }
      const head = logSoftmax(this.head.forward(rows), 1);
      output = add(output, squeeze(gather(head, 1, unsqueeze(to(chosen, 'int64'), 1)), 1));
      return { output: isBatched ? output : squeeze(output, 0), loss: neg(output).mean() };
    });
  }

  /** Returns the log probabilities [rows, classes] of all classes. */
  logProb(input: Tensor): Tensor {
    if (input.rank !== 2) throw needsRank(`${adaptive}: input`, 2, input.shape);
    return scope(() => {
      const head = logSoftmax(this.head.forward(input), 1);
      const short = this.cutoffs[0]!;
      const clusters = [...this.tail].map((cluster, i) =>
        add(logSoftmax(cluster.forward(input), 1), narrow(head, 1, short + i, 1)),
      );
      return cat([narrow(head, 1, 0, short), ...clusters], 1);
    });
  }

  /** Returns the class with the largest probability for each row. Waits for a device. */
  predict(input: Tensor): Tensor {
    if (input.rank !== 2) throw needsRank(`${adaptive}: input`, 2, input.shape);
    return scope(() => {
      const best = argmax(this.head.forward(input), 1);
      const isRare = ge(best, this.cutoffs[0]!);
      if (any(isRare).item() === 0) return best;
      const positions = squeeze(nonzero(isRare), 1);
      return indexPut(best, [positions], argmax(this.logProb(indexSelect(input, 0, positions)), 1));
    });
  }

  #checkLabels(labels: Tensor): void {
    if (labels.count === 0) return;
    const ends = [min(labels).item(), max(labels).item()];
    for (const label of ends)
      if (label < 0 || label >= this.nClasses) throw labelOutOfRange(adaptive, label, 0, this.nClasses);
  }
}
