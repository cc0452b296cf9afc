// The operations that the package exports, with their types of options.
export type {
  AddedOptions,
  AminmaxOptions,
  ArgsortOptions,
  BucketizeOptions,
  CloseOptions,
  Dims,
  GeluOptions,
  HistogramOptions,
  NormOptions,
  Range,
  ScatterReduction,
  ToOptions,
  VarianceOptions,
  ViewIndex,
} from '../core/op-options.ts';
export type { Index, Sorted } from '../core/tensor.ts';
export { allclose, equal, isclose } from './compare/close.ts';
export { type IsinOptions, isin } from './compare/isin.ts';
export { type MeshgridOptions, meshgrid } from './creation/meshgrid.ts';
export {
  hardshrink,
  hardsigmoid,
  hardswish,
  hardtanh,
  relu6,
  softshrink,
  threshold,
} from './elementwise/activations/bounded.ts';
export { glu, leakyRelu, softsign, tanhshrink } from './elementwise/activations/composed.ts';
export { celu, elu, logSigmoid, mish, prelu, selu, softplus } from './elementwise/activations/smooth.ts';
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
} from './elementwise/binary.ts';
export { maskedFill } from './elementwise/choose.ts';
export { clamp } from './elementwise/clamp.ts';
export { clone, contiguous, isFloatingPoint, pinMemory, to } from './elementwise/convert.ts';
export { type DropoutOptions, dropout } from './elementwise/dropout.ts';
export {
  bitwiseAnd,
  bitwiseLeftShift,
  bitwiseNot,
  bitwiseOr,
  bitwiseRightShift,
  bitwiseXor,
  gcd,
  lcm,
} from './elementwise/functions/bits.ts';
export { type AddcOptions, addcdiv, addcmul, lerp } from './elementwise/functions/blends.ts';
export { floatPower, fmax, fmin, ldexp, positive } from './elementwise/functions/extremes.ts';
export {
  atan2,
  copysign,
  floorDivide,
  fmod,
  heaviside,
  hypot,
  logaddexp,
  logaddexp2,
  remainder,
  xlogy,
} from './elementwise/functions/pairs.ts';
export {
  deg2rad,
  frac,
  logit,
  nanToNum,
  rad2deg,
  reciprocal,
  sgn,
  sinc,
} from './elementwise/functions/single.ts';
export {
  isfinite,
  isinf,
  isnan,
  isneginf,
  isposinf,
  signbit,
} from './elementwise/functions/tests.ts';
export { add_, copy_, div_, fill_, mul_, sub_, zero_ } from './elementwise/in-place.ts';
export {
  abs,
  acos,
  acosh,
  asin,
  asinh,
  atan,
  atanh,
  ceil,
  cos,
  cosh,
  erf,
  erfc,
  erfinv,
  exp,
  exp2,
  expm1,
  floor,
  gelu,
  log,
  log1p,
  log2,
  log10,
  neg,
  relu,
  round,
  rsqrt,
  sigmoid,
  sign,
  silu,
  sin,
  sinh,
  sqrt,
  square,
  tan,
  tanh,
  trunc,
} from './elementwise/unary.ts';
export { at } from './indexing/at.ts';
export { type EmbeddingBagOptions, embeddingBag } from './indexing/embedding-bag.ts';
export { indexReduce, maskedScatter, put } from './indexing/flat-writes.ts';
export { type IndexAddOptions, indexAdd, indexCopy, indexFill } from './indexing/index-write.ts';
export { embedding, gather, indexSelect, oneHot, take, takeAlongDim } from './indexing/lookup.ts';
export { maskedSelect, nonzero, nonzero as argwhere } from './indexing/mask.ts';
export { indexPut, type PutOptions, set } from './indexing/put.ts';
export { scatter, scatterAdd } from './indexing/scatter.ts';
export { type ScatterReduceOptions, scatterReduce } from './indexing/scatter-reduce.ts';
export { diagonalScatter, selectScatter, sliceScatter } from './indexing/view-scatter.ts';
export { where } from './indexing/where.ts';
export {
  type AttentionOptions,
  type GroupedAttentionOptions,
  scaledDotProductAttention,
  selfAttention,
} from './layers/attention.ts';
export { type BatchNormOptions, type BatchNormSync, batchNorm } from './layers/batch-norm.ts';
export { type Conv1dOptions, type ConvOptions, conv1d, conv2d } from './layers/conv.ts';
export {
  addLayerNorm,
  type LayerNormOptions,
  layerNorm,
  type RmsNormOptions,
  rmsNorm,
} from './layers/norm.ts';
export {
  type AvgPoolOptions,
  adaptiveAvgPool2d,
  avgPool2d,
  type MaxPoolOptions,
  maxPool2d,
  maxPool2dWithIndices,
  type OutputSize,
  type PoolOptions,
} from './layers/pool.ts';
export {
  type ApplyRotaryOptions,
  applyRotary,
  type RotaryEmbeddingOptions,
  rotaryEmbedding,
} from './layers/rotary.ts';
export { logSoftmax, softmax, softmin } from './layers/softmax.ts';
export type { ClassLossOptions, CrossEntropyOptions } from './losses/class-options.ts';
export { crossEntropy } from './losses/cross-entropy.ts';
export { type CtcLossOptions, ctcLoss, type Lengths } from './losses/ctc.ts';
export {
  type GaussianNllOptions,
  gaussianNllLoss,
  type PoissonNllOptions,
  poissonNllLoss,
} from './losses/likelihoods.ts';
export { type LinearCrossEntropyOptions, linearCrossEntropy } from './losses/linear-cross-entropy.ts';
export { nllLoss } from './losses/loss.ts';
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
} from './losses/loss-pairs.ts';
export {
  hingeEmbeddingLoss,
  type MarginOptions,
  marginRankingLoss,
  type PairwiseDistanceOptions,
  pairwiseDistance,
  type TripletMarginOptions,
  type TripletMarginWithDistanceOptions,
  tripletMarginLoss,
  tripletMarginWithDistanceLoss,
} from './losses/margins.ts';
export {
  type MultilabelSoftMarginOptions,
  type MultiMarginOptions,
  multilabelMarginLoss,
  multilabelSoftMarginLoss,
  multiMarginLoss,
  softMarginLoss,
} from './losses/multi-class.ts';
export { addbmm, addmm, addmv, addr, baddbmm } from './matrix/added.ts';
export { bilinear } from './matrix/bilinear.ts';
export {
  blockDiag,
  diag,
  diagEmbed,
  diagflat,
  diagonal,
  type TriangleIndexOptions,
  trace,
  trilIndices,
  triuIndices,
} from './matrix/diagonals.ts';
export { einsum } from './matrix/einsum.ts';
export { type LinearOptions, linear } from './matrix/linear.ts';
export { matmul } from './matrix/matmul.ts';
export { bmm, cross, dot, inner, kron, mm, mv, outer, tensordot, vdot } from './matrix/products.ts';
export { vander } from './matrix/vander.ts';
export { bucketize, type SearchOptions, searchsorted } from './order/search.ts';
export { argsort, kthvalue, median, msort, nanmedian } from './order/sorted.ts';
export { type CosineEmbeddingOptions, cosineEmbeddingLoss, cosineSimilarity } from './reduce/cosine.ts';
export { all, any, argmax, argmin, max, mean, min, prod, sum } from './reduce/reduce.ts';
export type { LossOptions, Reduction } from './reduce/reduction.ts';
export { logSumExp } from './reduce/statistics.ts';
export { std, variance, varMean } from './reduce/variance.ts';
export { norm } from './reduce/vector-norm.ts';
export { type CombinationOptions, cartesianProd, combinations } from './shape/choices.ts';
export { cat, chunk, split, stack } from './shape/join.ts';
export {
  broadcastTensors,
  broadcastTo,
  expandAs,
  fliplr,
  flipud,
  movedim,
  ravel,
  reshapeAs,
  rot90,
  swapaxes,
  viewAs,
} from './shape/moves.ts';
export { cumsum, sort, topk, tril, triu } from './shape/order.ts';
export { flip, repeat, roll, unbind, unflatten } from './shape/rearrange.ts';
export { repeatInterleave, tile } from './shape/repeats.ts';
export { broadcastShapes } from './shape/sizes.ts';
export { dsplit, hsplit, type Sections, tensorSplit, vsplit } from './shape/splits.ts';
export { atleast1d, atleast2d, atleast3d, columnStack, dstack, hstack, vstack } from './shape/stacks.ts';
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
} from './shape/views.ts';
export * from './spatial/index.ts';
export { type BincountOptions, bincount, histc, mode } from './statistics/counting.ts';
export { corrcoef, cov } from './statistics/covariance.ts';
export { cumulativeTrapezoid, type DiffOptions, diff, trapezoid } from './statistics/differences.ts';
export { cdist, dist, normalize, pdist, renorm } from './statistics/distances.ts';
export { histogram } from './statistics/histogram.ts';
export { amax, amin, aminmax, countNonzero, nanmean, nansum, stdMean } from './statistics/missing.ts';
export { nanquantile, quantile } from './statistics/quantile.ts';
export { cummax, cummin, cumprod, logcumsumexp } from './statistics/running.ts';
export { type GradientOptions, gradient } from './statistics/slopes.ts';
export { type Unique, unique, uniqueConsecutive } from './statistics/unique.ts';
