// The exports of PyTorch's transformer and its parts.
export {
  type DecoderForwardOptions,
  type EncoderLayerForwardOptions,
  TransformerDecoderLayer,
  TransformerEncoderLayer,
  type TransformerLayerOptions,
} from './layers.ts';
export {
  MultiheadAttention,
  type MultiheadAttentionOptions,
  type MultiheadForwardOptions,
} from './multihead-attention.ts';
export {
  type EncoderForwardOptions,
  Transformer,
  TransformerDecoder,
  TransformerEncoder,
  type TransformerForwardOptions,
  type TransformerOptions,
  type TransformerStackOptions,
} from './stacks.ts';
