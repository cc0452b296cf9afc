export { elu, leakyRelu, softplus } from './activations.ts';
export {
  type AttentionOptions,
  type GroupedAttentionOptions,
  scaledDotProductAttention,
  selfAttention,
} from './attention.ts';
export { type BatchNormOptions, type BatchNormSync, batchNorm } from './batch-norm.ts';
export {
  add,
  div,
  eq,
  ge,
  gt,
  le,
  logicalAnd,
  logicalNot,
  logicalOr,
  logicalXor,
  lt,
  maximum,
  minimum,
  mul,
  ne,
  pow,
  sub,
} from './binary.ts';
export { maskedFill, where } from './choose.ts';
export { clamp } from './clamp.ts';
export { type Conv1dOptions, type ConvOptions, conv1d, conv2d } from './conv.ts';
export { clone, contiguous, pinMemory, type ToOptions, to } from './convert.ts';
export { type CosineEmbeddingOptions, cosineEmbeddingLoss, cosineSimilarity } from './cosine.ts';
export { type CrossEntropyOptions, crossEntropy } from './cross-entropy.ts';
export { type DropoutOptions, dropout } from './dropout.ts';
export { einsum } from './einsum.ts';
export { add_, copy_, div_, fill_, mul_, sub_, zero_ } from './in-place.ts';
export { at, type Index, type Range } from './indexing.ts';
export { cat, chunk, split, stack } from './join.ts';
export { type LinearOptions, linear } from './linear.ts';
export { embedding, gather, indexSelect, oneHot, scatterAdd } from './lookup.ts';
export { type ClassLossOptions, nllLoss } from './loss.ts';
export {
  type BCELossOptions,
  type BCEWithLogitsOptions,
  bce,
  bceWithLogits,
  type HuberLossOptions,
  huberLoss,
  type KLDivOptions,
  klDiv,
  l1Loss,
  mseLoss,
  type SmoothL1LossOptions,
  smoothL1Loss,
} from './loss-pairs.ts';
export { matmul } from './matmul.ts';
export { addLayerNorm, type LayerNormOptions, layerNorm, type RmsNormOptions, rmsNorm } from './norm.ts';
export { cumsum, type Sorted, sort, topk, tril, triu } from './order.ts';
export {
  type AvgPoolOptions,
  adaptiveAvgPool2d,
  avgPool2d,
  type MaxPoolOptions,
  maxPool2d,
  type OutputSize,
  type PoolOptions,
} from './pool.ts';
export { flip, repeat, roll, unbind, unflatten } from './rearrange.ts';
export { all, any, argmax, argmin, type Dims, max, mean, min, prod, sum } from './reduce.ts';
export type { LossOptions, Reduction } from './reduction.ts';
export { logSoftmax, softmax } from './softmax.ts';
export { logSumExp } from './statistics.ts';
export {
  abs,
  ceil,
  cos,
  erf,
  exp,
  floor,
  type GeluOptions,
  gelu,
  log,
  neg,
  relu,
  round,
  rsqrt,
  sigmoid,
  sign,
  silu,
  sin,
  sqrt,
  square,
  tanh,
  trunc,
} from './unary.ts';
export { std, type VarianceOptions, variance, varMean } from './variance.ts';
export { type NormOptions, norm } from './vector-norm.ts';
export {
  expand,
  flatten,
  narrow,
  permute,
  reshape,
  select,
  squeeze,
  t,
  transpose,
  unsqueeze,
  view,
} from './views.ts';
