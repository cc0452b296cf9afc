// The exports of @ringwise/tensor/nn. Importing it adds the methods to tensors.
import '../ops/methods/index.ts';

export { type BufferOptions, buffer } from './buffer.ts';
export * as init from './initializers.ts';
export {
  Dropout,
  ELU,
  GELU,
  Identity,
  LeakyReLU,
  LogSoftmax,
  Sigmoid,
  SiLU,
  Softmax,
  Softplus,
  Tanh,
} from './layers/activations.ts';
export { MultiHeadAttention, type MultiHeadAttentionOptions } from './layers/attention.ts';
export {
  BatchNorm,
  BatchNorm1d,
  BatchNorm2d,
  BatchNorm3d,
  type BatchNormLayerOptions,
} from './layers/batch-norm.ts';
export { ModuleDict, ModuleList, Sequential } from './layers/containers.ts';
export { Conv1d, Conv2d, Conv3d, type ConvLayerOptions, type PaddingMode } from './layers/conv.ts';
export {
  Embedding,
  EmbeddingBag,
  type EmbeddingBagLayerOptions,
  type EmbeddingOptions,
} from './layers/embedding.ts';
export { Bilinear, Linear } from './layers/linear.ts';
export {
  BCELoss,
  BCEWithLogitsLoss,
  CosineEmbeddingLoss,
  CosineSimilarity,
  type CosineSimilarityOptions,
  CrossEntropyLoss,
  HuberLoss,
  KLDivLoss,
  L1Loss,
  MSELoss,
  NLLLoss,
  SmoothL1Loss,
} from './layers/losses/losses.ts';
export {
  GaussianNLLLoss,
  HingeEmbeddingLoss,
  MarginRankingLoss,
  MultiLabelMarginLoss,
  MultiLabelSoftMarginLoss,
  MultiMarginLoss,
  PairwiseDistance,
  PoissonNLLLoss,
  SoftMarginLoss,
  TripletMarginLoss,
  TripletMarginWithDistanceLoss,
} from './layers/losses/more-losses.ts';
export {
  type AdaptiveLogSoftmaxOptions,
  AdaptiveLogSoftmaxWithLoss,
  CTCLoss,
  LinearCrossEntropyLoss,
  type LinearCrossEntropyLossOptions,
} from './layers/losses/sequence-losses.ts';
export {
  CELU,
  GLU,
  Hardshrink,
  Hardsigmoid,
  Hardswish,
  Hardtanh,
  LogSigmoid,
  Mish,
  PReLU,
  ReLU6,
  RReLU,
  SELU,
  Softmax2d,
  Softmin,
  Softshrink,
  Softsign,
  Tanhshrink,
  Threshold,
} from './layers/more-activations.ts';
export { LayerNorm, type LayerNormLayerOptions, RMSNorm, type RMSNormLayerOptions } from './layers/norm.ts';
export { ParameterDict, ParameterList } from './layers/parameter-containers.ts';
export { AdaptiveAvgPool2d, AvgPool2d, MaxPool2d } from './layers/pool.ts';
export * from './layers/recurrent/index.ts';
export * from './layers/spatial/index.ts';
export { Flatten, ReLU } from './layers/stateless.ts';
export * from './layers/transformer/index.ts';
export { TransformerBlock, type TransformerBlockOptions } from './layers/transformer.ts';
export {
  type ForwardHook,
  type ForwardPreHook,
  type FullBackwardHook,
  type FullBackwardPreHook,
  type Layer,
  type LoadStateDictOptions,
  Module,
} from './module.ts';
export { parameter } from './parameter.ts';
export type { LoadResult, StateDict } from './state-dict.ts';
