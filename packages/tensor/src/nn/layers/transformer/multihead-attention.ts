// PyTorch's MultiheadAttention. MultiHeadAttention (attention.ts) is the shorter one for [batch, time, width].
import { checkOptions, optionChecks } from '../../../checks/options.ts';
import { badQueryKeyValue, causalWithoutMask } from '../../../checks/sequence-errors.ts';
import { atLeastOne, checkValue, flag, tensorOrNull } from '../../../checks/value-checks.ts';
import { scope } from '../../../core/context.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { badOption, shown } from '../../../errors.ts';
import { requireTensor } from '../../../ops/elementwise/convert.ts';
import {
  add,
  dropout,
  linear,
  logicalNot,
  matmul,
  mean,
  mul,
  reshape,
  scaledDotProductAttention,
  softmax,
  squeeze,
  transpose,
  unsqueeze,
} from '../../../ops/index.ts';
import { attentionDropout } from '../../../ops/layers/attention.ts';
import { declareFields } from '../../fields.ts';
import { constantParameter, uniformParameter } from '../../init.ts';
import { xavierNormal_ } from '../../initializers.ts';
import { Module } from '../../module.ts';
import { Linear } from '../linear.ts';
import { withExtraColumns, withExtraRows } from './extra-keys.ts';
import { asScores, jointMask } from './masks.ts';

/** Options of MultiheadAttention. */
export interface MultiheadAttentionOptions {
  /** Probability, below 1, with which a weight is dropped while training. Default 0. */
  readonly dropout?: number;
  /** Whether the projections have a bias. Default true. */
  readonly bias?: boolean;
  /** Width of the keys. Default embedDim. */
  readonly kdim?: number;
  /** Width of the values. Default embedDim. */
  readonly vdim?: number;
  /** Whether tensors are [batch, time, width] instead of [time, batch, width]. Default false. */
  readonly batchFirst?: boolean;
  /** Whether a learned key and a learned value are appended to those of the input. Default false. */
  readonly addBiasKv?: boolean;
  /** Whether a key and a value of zeros are appended to all others. Default false. */
  readonly addZeroAttn?: boolean;
}

const multiheadOptions = optionChecks<MultiheadAttentionOptions>({
  dropout: attentionDropout,
  bias: flag,
  kdim: atLeastOne,
  vdim: atLeastOne,
  batchFirst: flag,
  addBiasKv: flag,
  addZeroAttn: flag,
});

/** Options of MultiheadAttention.forward(). */
export interface MultiheadForwardOptions {
  /** [batch, keys], or [keys] without batch: bool, true hiding a key, or floats that are added to the scores. */
  readonly keyPaddingMask?: Tensor | null;
  /** Whether weights are returned, too. Without them, they are never in memory. Default true. */
  readonly needWeights?: boolean;
  /** [queries, keys] or [batch · heads, queries, keys]: bool, true hiding a key, or floats that are added. */
  readonly attnMask?: Tensor | null;
  /** Whether the returned weights are the mean over heads. Default true. */
  readonly averageAttnWeights?: boolean;
  /** Says that attnMask, which must be given, hides the keys after each query. Default false. */
  readonly isCausal?: boolean;
}

const forwardOptions = optionChecks<MultiheadForwardOptions>({
  keyPaddingMask: tensorOrNull,
  needWeights: flag,
  attnMask: tensorOrNull,
  averageAttnWeights: flag,
  isCausal: flag,
});

/** Attention with several heads, with PyTorch's arguments, names of parameters and initial values. */
export class MultiheadAttention extends Module {
  /** Width of queries and outputs. */
  readonly embedDim: number;
  /** Number of heads. */
  readonly numHeads: number;
  /** Width of the keys. */
  readonly kdim: number;
  /** Width of the values. */
  readonly vdim: number;
  /** Probability with which an attention weight is dropped while training. */
  readonly dropout: number;
  /** Whether tensors are [batch, time, width] instead of [time, batch, width]. */
  readonly batchFirst: boolean;
  /** [3 · embedDim, embedDim]; null if keys or values have another width. */
  readonly inProjWeight: Tensor | null;
  /** [embedDim, embedDim], [embedDim, kdim] and [embedDim, vdim] if keys or values have another width. */
  readonly projWeights: readonly [q: Tensor, k: Tensor, v: Tensor] | null;
  /** Bias of the three projections, [3 · embedDim]; null without. */
  readonly inProjBias: Tensor | null;
  /** The learned key, [1, 1, embedDim]; null without. */
  readonly biasK: Tensor | null;
  /** The learned value, [1, 1, embedDim]; null without. */
  readonly biasV: Tensor | null;
  /** Whether a key and a value of zeros are appended to all others. */
  readonly addZeroAttn: boolean;
  /** Projection of the joined heads, [embedDim, embedDim]. */
  readonly outProj: Linear;

  constructor(embedDim: number, numHeads: number, options: MultiheadAttentionOptions = {}) {
    super();
    checkOptions('MultiheadAttention', options, multiheadOptions);
    checkValue('MultiheadAttention: embedDim', embedDim, atLeastOne);
    checkValue('MultiheadAttention: numHeads', numHeads, atLeastOne);
    if (embedDim % numHeads !== 0)
      throw badOption('MultiheadAttention: embedDim', `a multiple of numHeads ${numHeads}`, shown(embedDim));
    const { dropout = 0, bias = true, kdim = embedDim, vdim = embedDim, batchFirst = false } = options;
    this.embedDim = embedDim;
    this.numHeads = numHeads;
    this.kdim = kdim;
    this.vdim = vdim;
    this.dropout = dropout;
    this.batchFirst = batchFirst;
    const isOne = kdim === embedDim && vdim === embedDim;
    // Xavier uniform; a joint weight counts as one matrix.
    const xavier = (rows: number, cols: number): Tensor =>
      uniformParameter([rows, cols], Math.sqrt(6 / (rows + cols)));
    this.inProjWeight = isOne ? xavier(3 * embedDim, embedDim) : null;
    this.projWeights = isOne
      ? null
      : [xavier(embedDim, embedDim), xavier(embedDim, kdim), xavier(embedDim, vdim)];
    this.inProjBias = bias ? constantParameter([3 * embedDim], 0) : null;
    const learned = (): Tensor | null =>
      options.addBiasKv ? xavierNormal_(constantParameter([1, 1, embedDim], 0)) : null;
    this.biasK = learned();
    this.biasV = learned();
    this.addZeroAttn = options.addZeroAttn ?? false;
    this.outProj = new Linear(embedDim, embedDim, { bias });
    this.outProj.bias?.detach().zero_();
    declareFields(this, {
      ...{ inProjWeight: 'parameter', inProjBias: 'parameter', biasK: 'parameter', biasV: 'parameter' },
      outProj: 'module',
    });
  }

  protected override *members(): Iterable<[string, unknown]> {
    yield ['in_proj_weight', this.inProjWeight];
    for (const [i, name] of ['q', 'k', 'v'].entries()) yield [`${name}_proj_weight`, this.projWeights?.[i]];
    yield ['in_proj_bias', this.inProjBias];
    yield ['bias_k', this.biasK];
    yield ['bias_v', this.biasV];
    yield ['out_proj', this.outProj];
  }

  /**
   * Returns [output, weights]; weights are null without needWeights. Query is [queries, batch, embedDim], key and value
   * are [keys, batch, kdim] and [keys, batch, vdim], all with the batch first if batchFirst is set, or all without
   * batch. Weights are [batch, queries, keys], or [batch, heads, queries, keys] with averageAttnWeights: false.
   */
  forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: MultiheadForwardOptions = {},
  ): [output: Tensor, weights: Tensor | null] {
    const op = 'MultiheadAttention';
    checkOptions(`${op}.forward`, options, forwardOptions);
    for (const given of [query, key, value]) requireTensor(op, given);
    const { needWeights = true, averageAttnWeights = true, isCausal = false } = options;
    const { attnMask = null, keyPaddingMask = null } = options;
    this.#checkShapes(query, key, value);
    if (isCausal && !attnMask) throw causalWithoutMask();
    return scope(() => {
      const isBatched = query.rank === 3;
      const [q, ownK, ownV] = this.#projected(query, key, value);
      const [batch, heads, queries] = q.shape as [number, number, number];
      const sizes = { batch, heads, queries, keys: ownK.shape[2]!, isBatched };
      const k = withExtraRows(ownK, this.biasK, this.addZeroAttn);
      const v = withExtraRows(ownV, this.biasV, this.addZeroAttn);
      const extra = k.shape[2]! - sizes.keys;
      const mask = withExtraColumns(jointMask(attnMask, keyPaddingMask, query.dtype, sizes), extra);
      const p = this.training ? this.dropout : 0;
      const isPlainCausal = isCausal && !needWeights && !keyPaddingMask && extra === 0;
      const [heard, weights] = needWeights
        ? weighed(q, k, v, mask, p)
        : [fused(q, k, v, isPlainCausal ? null : mask, isPlainCausal, p), null];
      const joined = reshape(transpose(heard, 1, 2), [batch, queries, this.embedDim]);
      const output = this.outProj.forward(joined);
      const average = weights && averageAttnWeights ? mean(weights, 1) : weights;
      if (!isBatched) return [squeeze(output, 0), average && squeeze(average, 0)];
      return [this.batchFirst ? output : transpose(output, 0, 1), average];
    });
  }

  #checkShapes(q: Tensor, k: Tensor, v: Tensor): void {
    const widths = [this.embedDim, this.kdim, this.vdim];
    const at = this.batchFirst ? { batch: 0, time: 1 } : { batch: 1, time: 0 };
    const isBatched = q.rank === 3;
    const fits =
      (isBatched || q.rank === 2) &&
      [q, k, v].every(({ rank, shape }, i) => rank === q.rank && shape.at(-1) === widths[i]) &&
      k.shape[isBatched ? at.time : 0] === v.shape[isBatched ? at.time : 0] &&
      (!isBatched || (k.shape[at.batch] === q.shape[at.batch] && v.shape[at.batch] === q.shape[at.batch]));
    if (!fits) throw badQueryKeyValue(this.batchFirst, widths, q.shape, k.shape, v.shape);
  }

  /** Returns the heads of queries, keys and values: [batch, heads, time, width of a head]. */
  #projected(query: Tensor, key: Tensor, value: Tensor): [Tensor, Tensor, Tensor] {
    const { embedDim, numHeads, inProjWeight, inProjBias, projWeights } = this;
    const byBatch = (x: Tensor): Tensor =>
      x.rank === 2 ? unsqueeze(x, 0) : this.batchFirst ? x : transpose(x, 0, 1);
    const heads = (x: Tensor): Tensor =>
      transpose(reshape(x, [x.shape[0]!, x.shape[1]!, numHeads, embedDim / numHeads]), 1, 2);
    if (inProjWeight && query === key && key === value) {
      const parts = linear(byBatch(query), inProjWeight, inProjBias).split(embedDim, -1);
      return parts.map(heads) as [Tensor, Tensor, Tensor];
    }
    const weights = projWeights ?? inProjWeight!.split(embedDim, 0);
    const biases = inProjBias?.split(embedDim, 0);
    const project = (x: Tensor, i: number): Tensor =>
      heads(linear(byBatch(x), weights[i]!, biases?.[i] ?? null));
    return [project(query, 0), project(key, 1), project(value, 2)];
  }
}

/** Computes attention without its weights in memory. */
function fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | null, causal: boolean, p: number): Tensor {
  const own = mask?.dtype === 'bool' ? logicalNot(mask) : mask;
  return scaledDotProductAttention(q, k, v, { mask: own, causal, dropout: p });
}

/** Computes attention and its weights [batch, heads, queries, keys], after dropout as in PyTorch. */
function weighed(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | null, p: number): [Tensor, Tensor] {
  const products = matmul(mul(q, 1 / Math.sqrt(q.shape.at(-1)!)), transpose(k, -2, -1));
  const scores = mask ? add(products, asScores(mask, q.dtype)) : products;
  const weights = dropout(softmax(scores, -1), p);
  return [matmul(weights, v), weights];
}
