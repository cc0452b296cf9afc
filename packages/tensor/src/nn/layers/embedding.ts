// Tables of vectors: a layer that looks them up, and one that combines several.
import { kernels } from '../../backends/index.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, checkValue, flag, nonNegativeInteger, tensorOrNull } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, shown } from '../../errors.ts';
import { embedding, embeddingBag, ne, unsqueeze, where } from '../../ops/index.ts';
import { type EmbeddingBagOptions, embeddingBagChecks } from '../../ops/indexing/embedding-bag.ts';
import {
  dividedByFrequency,
  type RowRules,
  rowRuleChecks,
  shortenRows,
} from '../../ops/indexing/row-rules.ts';
import { declareFields } from '../fields.ts';
import { normalParameter } from '../init.ts';
import { Module } from '../module.ts';

/** Options of Embedding. */
export interface EmbeddingOptions extends RowRules {
  /** Row of the table that starts as 0 and gets no gradient; a negative one counts from the end. Default null: none. */
  readonly paddingIdx?: number | null;
  /** Whether the gradient of a row is divided by how often the indices of a forward name it. Default false. */
  readonly scaleGradByFreq?: boolean;
}

const embeddingOptions = optionChecks<EmbeddingOptions>({
  paddingIdx: anything,
  scaleGradByFreq: flag,
  ...rowRuleChecks,
});

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
  /** Whether the gradient of a row is divided by how often the indices name it. */
  readonly scaleGradByFreq: boolean;

  constructor(count: number, width: number, options: EmbeddingOptions = {}) {
    super();
    checkOptions('Embedding', options, embeddingOptions);
    checkValue('Embedding: count', count, nonNegativeInteger);
    checkValue('Embedding: width', width, nonNegativeInteger);
    const { paddingIdx = null, maxNorm = null, normType = 2, scaleGradByFreq = false } = options;
    this.maxNorm = maxNorm;
    this.normType = normType;
    this.scaleGradByFreq = scaleGradByFreq;
    const fits =
      paddingIdx === null || (Number.isInteger(paddingIdx) && paddingIdx >= -count && paddingIdx < count);
    if (!fits)
      throw badOption('Embedding: paddingIdx', `an index from ${-count} to ${count - 1}`, shown(paddingIdx));
    this.weight = normalParameter([count, width]);
    declareFields(this, { weight: 'parameter' });
    this.paddingIdx = paddingIdx === null ? null : (paddingIdx + count) % count;
    if (this.paddingIdx === null) return;
    const row = { memory: this.weight.memory, offset: this.paddingIdx * width, strides: null };
    kernels().copy([width], row, 0);
  }

  /** Takes integers of any shape; returns their rows, [...index, width]. */
  forward(index: Tensor): Tensor {
    if (this.maxNorm !== null) shortenRows(index, this.weight, this.maxNorm, this.normType);
    const found = embedding(index, this.weight);
    const rows = this.scaleGradByFreq ? dividedByFrequency(found, index, this.weight.shape[0]!) : found;
    if (rows !== found) found.dispose();
    if (this.paddingIdx === null) return rows;
    // Padding has the values of its row, but contributes no gradient to it.
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
    declareFields(this, { weight: 'parameter' });
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
