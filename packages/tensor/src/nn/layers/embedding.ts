// Tables of vectors: a layer that looks them up, and one that combines several.
import { kernels } from '../../backends/index.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import {
  aNumber,
  anything,
  checkValue,
  nonNegative,
  nonNegativeInteger,
  tensorOrNull,
} from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, shown } from '../../errors.ts';
import { add, div, embedding, embeddingBag, gt, mul, ne, norm, unsqueeze, where } from '../../ops/index.ts';
import { type EmbeddingBagOptions, embeddingBagChecks } from '../../ops/indexing/embedding-bag.ts';
import { normalParameter } from '../init.ts';
import { Module } from '../module.ts';

/** Options of Embedding. */
export interface EmbeddingOptions {
  /** Row of the table that starts as 0 and gets no gradient; a negative one counts from the end. Default: none. */
  readonly paddingIdx?: number;
  /**
   * Largest norm of a row: each forward first shortens the longer ones of the rows that it looks up, in the table
   * itself, as PyTorch does. Default: none.
   */
  readonly maxNorm?: number;
  /** Order of that norm, as in norm(). Default 2. */
  readonly normType?: number;
}

const embeddingOptions = optionChecks<EmbeddingOptions>({
  paddingIdx: anything,
  maxNorm: nonNegative,
  normType: aNumber,
});

/** Shortens the rows of `weight` at `index` to `maxNorm`, in place. */
function shorten(index: Tensor, weight: Tensor, maxNorm: number, normType: number): void {
  if (index.count === 0) return;
  noGrad(() =>
    scope(() => {
      const line = index.reshape([-1]);
      const rows = embedding(line, weight);
      const lengths = norm(rows, 1, { p: normType, keepDim: true });
      // In float64, because 1e-7 is lost beside a float32.
      const factors = div(maxNorm, add(lengths.to('float64'), 1e-7)).to(rows.dtype);
      const shorter = mul(rows, factors);
      weight.detach().indexCopy_(0, line.to('int64'), where(gt(lengths, maxNorm), shorter, rows));
    }),
  );
}

/**
 * Looks up rows of weight [count, width] for indices of any shape; the result is [...index, width]. weight
 * starts standard normal, as in PyTorch.
 */
export class Embedding extends Module {
  /** Table, [count, width]. */
  weight: Tensor;
  /** Row that gets no gradient; null if all rows do. */
  readonly paddingIdx: number | null;
  /** Largest norm of a row; null without. */
  readonly maxNorm: number | null;
  /** Order of that norm. */
  readonly normType: number;

  constructor(count: number, width: number, options: EmbeddingOptions = {}) {
    super();
    checkOptions('Embedding', options, embeddingOptions);
    checkValue('Embedding: count', count, nonNegativeInteger);
    checkValue('Embedding: width', width, nonNegativeInteger);
    const { paddingIdx, maxNorm = null, normType = 2 } = options;
    this.maxNorm = maxNorm;
    this.normType = normType;
    const fits =
      paddingIdx === undefined ||
      (Number.isInteger(paddingIdx) && paddingIdx >= -count && paddingIdx < count);
    if (!fits)
      throw badOption('Embedding: paddingIdx', `an index from ${-count} to ${count - 1}`, shown(paddingIdx));
    this.weight = normalParameter([count, width]);
    this.paddingIdx = paddingIdx === undefined ? null : (paddingIdx + count) % count;
    if (this.paddingIdx === null) return;
    const row = { memory: this.weight.memory, offset: this.paddingIdx * width, strides: null };
    kernels().copy([width], row, 0);
  }

  /** Takes integers of any shape; returns their rows, [...index, width]. */
  forward(index: Tensor): Tensor {
    if (this.maxNorm !== null) shorten(index, this.weight, this.maxNorm, this.normType);
    const rows = embedding(index, this.weight);
    if (this.paddingIdx === null) return rows;
    // Padding has the values of its row, but gives this row no gradient.
    const isToken = ne(index, this.paddingIdx);
    const mask = unsqueeze(isToken, -1);
    const values = rows.detach();
    const out = where(mask, rows, values);
    for (const tensor of [isToken, mask, values, rows]) tensor.dispose();
    return out;
  }
}

/** Options of EmbeddingBag. */
export type EmbeddingBagLayerOptions = Omit<EmbeddingBagOptions, 'perSampleWeights'>;

const bagWeightOptions = optionChecks<Pick<EmbeddingBagOptions, 'perSampleWeights'>>({
  perSampleWeights: tensorOrNull,
});
const bagOptions = optionChecks<EmbeddingBagLayerOptions>(embeddingBagChecks);

/**
 * Computes embeddingBag() of weight [count, width], which starts standard normal, as in PyTorch; the row of paddingIdx
 * starts as 0.
 */
export class EmbeddingBag extends Module {
  /** Table, [count, width]. */
  weight: Tensor;
  /** Options of embeddingBag(), as they were given. */
  readonly options: EmbeddingBagLayerOptions;

  constructor(count: number, width: number, options: EmbeddingBagLayerOptions = {}) {
    super();
    checkOptions('EmbeddingBag', options, bagOptions);
    checkValue('EmbeddingBag: count', count, nonNegativeInteger);
    checkValue('EmbeddingBag: width', width, nonNegativeInteger);
    const { paddingIdx = null } = options;
    if (paddingIdx !== null && (paddingIdx < -count || paddingIdx >= count))
      throw badOption(
        'EmbeddingBag: paddingIdx',
        `an index from ${-count} to ${count - 1}`,
        shown(paddingIdx),
      );
    this.weight = normalParameter([count, width]);
    this.options = options;
    if (paddingIdx === null) return;
    const row = paddingIdx < 0 ? paddingIdx + count : paddingIdx;
    kernels().copy([width], { memory: this.weight.memory, offset: row * width, strides: null }, 0);
  }

  /** Takes the arguments of embeddingBag(): an index, and offsets if it has one dimension. */
  forward(
    index: Tensor,
    offsets: Tensor | null = null,
    options: Pick<EmbeddingBagOptions, 'perSampleWeights'> = {},
  ): Tensor {
    checkOptions('EmbeddingBag.forward', options, bagWeightOptions);
    return embeddingBag(index, this.weight, offsets, { ...this.options, ...options });
  }
}
