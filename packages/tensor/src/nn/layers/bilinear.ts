// A layer of products of two inputs, and one of bags of vectors.
import { kernels } from '../../backends/index.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { atLeastOne, checkValue, flag, tensorOrNull } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, shown } from '../../errors.ts';
import { bilinear, embeddingBag } from '../../ops/index.ts';
import { type EmbeddingBagOptions, embeddingBagChecks } from '../../ops/indexing/embedding-bag.ts';
import { checkSlopes, rrelu } from '../../random/random-activations.ts';
import { normalParameter, uniformParameter } from '../init.ts';
import { Module } from '../module.ts';

const biasOption = optionChecks<{ readonly bias?: boolean }>({ bias: flag });

/**
 * Computes bilinear() of two inputs [..., in1] and [..., in2]. weight [out, in1, in2] and bias [out] start uniform in
 * ±1/√in1, which is PyTorch's default.
 */
export class Bilinear extends Module {
  readonly weight: Tensor;
  readonly bias: Tensor | null;

  constructor(
    in1Features: number,
    in2Features: number,
    outFeatures: number,
    options: { readonly bias?: boolean } = {},
  ) {
    super();
    checkOptions('Bilinear', options, biasOption);
    for (const [name, size] of Object.entries({ in1Features, in2Features, outFeatures }))
      checkValue(`Bilinear: ${name}`, size, atLeastOne);
    const bound = 1 / Math.sqrt(in1Features);
    this.weight = uniformParameter([outFeatures, in1Features, in2Features], bound);
    this.bias = options.bias === false ? null : uniformParameter([outFeatures], bound);
  }

  forward(input1: Tensor, input2: Tensor): Tensor {
    return bilinear(input1, input2, this.weight, this.bias);
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
  readonly weight: Tensor;
  readonly options: EmbeddingBagLayerOptions;

  constructor(count: number, width: number, options: EmbeddingBagLayerOptions = {}) {
    super();
    checkOptions('EmbeddingBag', options, bagOptions);
    checkValue('EmbeddingBag: count', count, atLeastOne);
    checkValue('EmbeddingBag: width', width, atLeastOne);
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

/** Layer of rrelu(): slopes below 0 are random while training. */
export class RReLU extends Module {
  readonly lower: number;
  readonly upper: number;

  constructor(lower = 1 / 8, upper = 1 / 3) {
    super();
    checkSlopes('RReLU', lower, upper);
    this.lower = lower;
    this.upper = upper;
  }

  forward(input: Tensor): Tensor {
    return rrelu(input, this.lower, this.upper, { training: this.training });
  }
}
