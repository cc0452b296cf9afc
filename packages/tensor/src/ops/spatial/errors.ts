// Errors of the operations on planes and signals.
import { type Shape, shapeError, show, type TensorError } from '../../errors/tensor-error.ts';

export const badPadding = (
  mode: string,
  shape: Shape,
  dim: number,
  before: number,
  after: number,
): TensorError =>
  shapeError(
    `pad: mode '${mode}' cannot pad dimension ${dim} of ${show(shape)} by ${before} in front and ${after} behind. 'reflect' adds less than the size, 'circular' at most the size, and no size may fall below 0.`,
  );

export const paddingRank = (mode: string, shape: Shape, count: number): TensorError =>
  shapeError(
    `pad: mode '${mode}' pads 1 to 3 dimensions of a tensor that has one or two more, got ${count} sizes for ${show(shape)}.`,
  );

/** `dims` names the spatial dimensions, such as 'height, width'. */
export const badConvolution = (
  op: string,
  dims: string,
  weights: string,
  x: Shape,
  w: Shape,
  b: Shape | null,
  groups: number,
): TensorError =>
  shapeError(
    `${op}: expected x [batch, in, ${dims}], w ${weights} and b [out], where in and out are multiples of groups ${groups}; got x ${show(x)}, w ${show(w)}, b ${b ? show(b) : 'null'}. x may lack the batch.`,
  );

export const badVolume = (op: string, shape: Shape): TensorError =>
  shapeError(
    `${op}: expected [batch, channels, depth, height, width] or [channels, depth, height, width] with volumes that are not empty, got ${show(shape)}.`,
  );

export const windowBeyondVolume = (op: string, kernel: Shape, size: Shape): TensorError =>
  shapeError(
    `${op}: a window of ${show(kernel)} is larger than the volume ${show(size)}, of which padding is no part. Take a smaller window.`,
  );

export const noOutput = (op: string, size: Shape): TensorError =>
  shapeError(`${op}: the result would have a plane of ${show(size)}. Take less padding or a larger input.`);

export const oneValuePerGroup = (op: string, shape: Shape): TensorError =>
  shapeError(`${op}: expected more than one value to normalise together, got shape ${show(shape)}.`);

export const badInterpolation = (mode: string, shape: Shape): TensorError =>
  shapeError(
    `interpolate: mode '${mode}' does not take ${show(shape)}: expected [batch, channels, length], [batch, channels, height, width] or, for 'trilinear', 'area' and the nearest modes, [batch, channels, depth, height, width], as the mode allows, and no size 0 but the batch, in the result neither.`,
  );

export const badSignal = (op: string, shape: Shape): TensorError =>
  shapeError(
    `${op}: expected [batch, channels, length] or [channels, length] with signals that are not empty, got ${show(shape)}.`,
  );

export const badChannelCount = (op: string, shape: Shape, divisor: number): TensorError =>
  shapeError(
    `${op}: expected at least 3 dimensions, and channels that ${divisor} divides, got ${show(shape)}.`,
  );

export const badUnshuffle = (shape: Shape, factor: number): TensorError =>
  shapeError(
    `pixelUnshuffle: expected at least 3 dimensions, and a height and width that ${factor} divides, got ${show(shape)}.`,
  );

export const badColumns = (shape: Shape, rows: number, count: number): TensorError =>
  shapeError(
    `col2im: expected [batch, channels · ${rows}, ${count}] or [channels · ${rows}, ${count}], one column for each window, got ${show(shape)}.`,
  );

export const badGrid = (x: Shape, grid: Shape): TensorError =>
  shapeError(
    `gridSample: expected x [batch, channels, height, width] with planes that are not empty, and a grid [batch, rows, columns, 2], or both with one more dimension and a grid [..., 3], got ${show(x)} and ${show(grid)}.`,
  );

export const badTheta = (theta: Shape, size: Shape): TensorError =>
  shapeError(
    `affineGrid: expected theta [batch, 2, 3] and a size [batch, channels, height, width] without 0, or [batch, 3, 4] and [batch, channels, depth, height, width], got ${show(theta)} and ${show(size)}.`,
  );
