// Operations on planes, signals and volumes.

export { type ColumnOptions, col2im, im2col } from './columns.ts';
export {
  type ConvTranspose1dOptions,
  type ConvTransposeOptions,
  convTranspose1d,
  convTranspose2d,
} from './conv-transpose.ts';
export { type ConvTranspose3dOptions, convTranspose3d } from './conv-transpose3d.ts';
export { type Conv3dOptions, conv3d } from './conv3d.ts';
export { alphaDropout, dropout1d, dropout2d, dropout3d, featureAlphaDropout } from './dropout.ts';
export { affineGrid, type GridSampleOptions, gridSample } from './grid-sample.ts';
export {
  type GroupNormOptions,
  groupNorm,
  type InstanceNormOptions,
  instanceNorm,
  type LocalResponseNormOptions,
  localResponseNorm,
} from './group-norm.ts';
export { type InterpolateOptions, type InterpolationMode, interpolate } from './interpolate.ts';
export { type PadMode, type PadOptions, pad } from './pad.ts';
export {
  type AvgPool1dOptions,
  adaptiveAvgPool1d,
  adaptiveMaxPool1d,
  adaptiveMaxPool2d,
  avgPool1d,
  type LpPoolOptions,
  lpPool1d,
  lpPool2d,
  type MaxPool1dOptions,
  maxPool1d,
  maxPool1dWithIndices,
} from './pooling/pool.ts';
export {
  type MaxUnpool1dOptions,
  type MaxUnpool3dOptions,
  type MaxUnpoolOptions,
  maxUnpool1d,
  maxUnpool2d,
  maxUnpool3d,
} from './pooling/unpool.ts';
export {
  type AvgPool3dOptions,
  adaptiveAvgPool3d,
  adaptiveMaxPool3d,
  avgPool3d,
  type LpPool3dOptions,
  lpPool3d,
  type MaxPool3dOptions,
  maxPool3d,
  maxPool3dWithIndices,
  type OutputSize3d,
} from './pooling/volumes.ts';
export { channelShuffle, pixelShuffle, pixelUnshuffle } from './shuffle.ts';
export type { Triple } from './sizes.ts';
