// Layers for planes, signals and volumes.
export { ConvTranspose1d, ConvTranspose2d, ConvTranspose3d } from './conv-transpose.ts';
export {
  GroupNorm,
  type GroupNormLayerOptions,
  InstanceNorm1d,
  InstanceNorm2d,
  InstanceNorm3d,
  type InstanceNormLayerOptions,
  LocalResponseNorm,
} from './group-norm.ts';
export {
  CircularPad1d,
  CircularPad2d,
  CircularPad3d,
  ConstantPad1d,
  ConstantPad2d,
  ConstantPad3d,
  type PadSizes,
  ReflectionPad1d,
  ReflectionPad2d,
  ReflectionPad3d,
  ReplicationPad1d,
  ReplicationPad2d,
  ReplicationPad3d,
  ZeroPad1d,
  ZeroPad2d,
  ZeroPad3d,
} from './pad.ts';
export {
  AdaptiveAvgPool1d,
  AdaptiveMaxPool1d,
  AdaptiveMaxPool2d,
  AvgPool1d,
  LPPool1d,
  LPPool2d,
  MaxPool1d,
} from './pool.ts';
export {
  AlphaDropout,
  ChannelShuffle,
  Dropout1d,
  Dropout2d,
  Dropout3d,
  FeatureAlphaDropout,
  Fold,
  PixelShuffle,
  PixelUnshuffle,
  Unflatten,
  Unfold,
} from './rearrange.ts';
export { MaxUnpool1d, MaxUnpool2d, MaxUnpool3d } from './unpool.ts';
export { Upsample, UpsamplingBilinear2d, UpsamplingNearest2d } from './upsample.ts';
export { AdaptiveAvgPool3d, AdaptiveMaxPool3d, AvgPool3d, LPPool3d, MaxPool3d } from './volume-pool.ts';
