// The embedding layer: a table of vectors.
import { kernels } from '../../backends/index.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, atLeastOne, checkValue } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, shown } from '../../errors.ts';
import { embedding, ne, unsqueeze, where } from '../../ops/index.ts';
import { normalParameter } from '../init.ts';
import { Module } from '../module.ts';

/** Options of Embedding. */
export interface EmbeddingOptions {
  /** Row of the table that starts as 0 and gets no gradient. Default: none. */
  readonly paddingIdx?: number;
}

const embeddingOptions = optionChecks<EmbeddingOptions>({ paddingIdx: anything });

/**
 * Looks up rows of weight [count, width] for indices of any shape; the result is [...index, width]. weight
 * starts standard normal, as in PyTorch.
 */
export class Embedding extends Module {
  readonly weight: Tensor;
  readonly paddingIdx: number | null;

  constructor(count: number, width: number, options: EmbeddingOptions = {}) {
    super();
    checkOptions('Embedding', options, embeddingOptions);
    checkValue('Embedding: count', count, atLeastOne);
    checkValue('Embedding: width', width, atLeastOne);
    const { paddingIdx } = options;
    const fits =
      paddingIdx === undefined || (Number.isInteger(paddingIdx) && paddingIdx >= 0 && paddingIdx < count);
    if (!fits) throw badOption('Embedding: paddingIdx', `an index from 0 to ${count - 1}`, shown(paddingIdx));
    this.weight = normalParameter([count, width]);
    this.paddingIdx = paddingIdx ?? null;
    if (this.paddingIdx === null) return;
    const row = { memory: this.weight.memory, offset: this.paddingIdx * width, strides: null };
    kernels().copy([width], row, 0);
  }

  forward(index: Tensor): Tensor {
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
