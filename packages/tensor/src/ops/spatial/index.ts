// Operations on planes, signals and volumes.

export { type ColumnOptions, col2im, im2col } from './columns.ts';
export {
  type ConvTranspose1dOptions,
  type ConvTransposeOptions,
  convTranspose1d,
  convTranspose2d,
} from './conv-transpose.ts';
export { type Conv3dOptions, conv3d } from './conv3d.ts';
export { alphaDropout, dropout1d, dropout2d, dropout3d } from './dropout.ts';
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
  type MaxUnpoolOptions,
  maxPool1d,
  maxUnpool2d,
} from './pool.ts';
export { channelShuffle, pixelShuffle, pixelUnshuffle } from './shuffle.ts';
export type { Triple } from './sizes.ts';
