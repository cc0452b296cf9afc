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
} from './activations.ts';
export { MultiHeadAttention, type MultiHeadAttentionOptions } from './attention.ts';
export { BatchNorm, BatchNorm1d, BatchNorm2d, type BatchNormLayerOptions } from './batch-norm.ts';
export { type BufferOptions, buffer } from './buffer.ts';
export { ModuleDict, ModuleList, Sequential } from './containers.ts';
export { Conv2d } from './conv.ts';
export { Embedding, type EmbeddingOptions } from './embedding.ts';
export type { ForwardHook, ForwardPreHook } from './hooks.ts';
export * as init from './initializers.ts';
export { Flatten, ReLU } from './layers.ts';
export { Linear } from './linear.ts';
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
} from './losses.ts';
export { type Layer, type LoadStateDictOptions, Module } from './module.ts';
export { LayerNorm, type LayerNormLayerOptions, RMSNorm, type RMSNormLayerOptions } from './norm.ts';
export { parameter } from './parameter.ts';
export { AdaptiveAvgPool2d, AvgPool2d, MaxPool2d } from './pool.ts';
export type { LoadResult, StateDict } from './state-dict.ts';
export { TransformerBlock, type TransformerBlockOptions } from './transformer.ts';
