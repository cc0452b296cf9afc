// Operations on planes, signals and volumes.

export {
  type ConvTranspose1dOptions,
  type ConvTransposeOptions,
  convTranspose1d,
  convTranspose2d,
} from './conv-transpose.ts';
export { type Conv3dOptions, conv3d } from './conv3d.ts';
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
export type { Triple } from './sizes.ts';
