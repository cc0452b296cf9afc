// Errors and warnings that only one operation, or one family of operations, has. Others are in errors.ts.
import type { DType } from '../core/dtype.ts';
import { type Shape, shapeError, show, TensorError } from '../errors/tensor-error.ts';

export const tooManyToTranspose = (shape: Shape): TensorError =>
  shapeError(
    `t: expected at most 2 dimensions, got shape ${show(shape)}. Use transpose, which takes two of them, or permute.`,
  );

export const unevenShifts = (shifts: number, dims: number): TensorError =>
  shapeError(
    `roll: expected one shift for each dimension, or one and no dimensions, got ${shifts} shifts and ${dims} dimensions.`,
  );

export const needsNumbers = (op: string): TensorError =>
  new TensorError(
    'ERR_TENSOR_DTYPE',
    `${op}: expected numbers, got bool. Use .to('int64') or .to('float32').`,
  );

export const badHeadGroups = (op: string, q: Shape, k: Shape, v: Shape): TensorError =>
  shapeError(
    `${op}: expected [..., heads, rows, width], where the heads of q are a multiple of those of k and of v (enableGqa), got q ${show(q)}, k ${show(k)}, v ${show(v)}.`,
  );

export const badConv1d = (x: Shape, w: Shape, b: Shape | null, groups: number): TensorError =>
  shapeError(
    `conv1d: expected x [batch, in, length] or [in, length], w [out, in / ${groups}, kernel] and b [out], where in and out are multiples of groups ${groups}; got x ${show(x)}, w ${show(w)}, b ${b ? show(b) : 'null'}.`,
  );

export const badLossWeight = (what: string, weight: Shape, losses: Shape): TensorError =>
  shapeError(
    `${what}: expected a shape that can be broadcast to ${show(losses)}, that of the losses, got ${show(weight)}.`,
  );

/** Returns the text of a warning. */
export const lossBroadcast = (op: string, prediction: Shape, target: Shape, shape: Shape): string =>
  `${op}: the prediction ${show(prediction)} and the target ${show(target)} differ in shape, so each was broadcast to ${show(shape)}. ` +
  'If that is not meant, use reshape, squeeze or unsqueeze; if it is, expand. Later cases are not reported.';

export const oddHalves = (op: string, dim: number, shape: Shape): TensorError =>
  shapeError(
    `${op}: expected an even size of dimension ${dim}, which is split into halves, got shape ${show(shape)}.`,
  );

export const badSlopes = (weight: Shape, channels: number, shape: Shape): TensorError =>
  shapeError(
    `prelu: expected a weight of one element or of [${channels}], one for each channel of ${show(shape)}, got ${show(weight)}.`,
  );

export const slopeDtype = (a: DType, weight: DType): TensorError =>
  new TensorError(
    'ERR_TENSOR_DTYPE',
    `prelu: expected a weight of ${a}, the dtype of the input, got ${weight}. Use weight.to('${a}').`,
  );

export const noDerivative = (op: string): TensorError =>
  new TensorError(
    'ERR_TENSOR_AUTOGRAD',
    `${op}: has no gradient. Use detach() on its operands, or noGrad(), if none is meant.`,
  );

export const dividedByZero = (op: string): TensorError =>
  new TensorError(
    'ERR_TENSOR_ARGUMENT',
    `${op}: an integer is divided by 0. Use .to('float32') for NaN and infinities.`,
  );

export const needsIntegers = (op: string, dtype: DType): TensorError =>
  new TensorError('ERR_TENSOR_DTYPE', `${op}: expected integers or bool, got ${dtype}. Use .to('int64').`);

export const notIntegerWeights = (what: string, dtype: DType): TensorError =>
  new TensorError('ERR_TENSOR_DTYPE', `${what}: expected integers, got ${dtype}. Use .to('int64').`);

export const needsOneDtype = (op: string, a: DType, b: DType): TensorError =>
  new TensorError('ERR_TENSOR_DTYPE', `${op}: expected operands of one dtype, got ${a} and ${b}. Use to().`);

export const fractionForIntegers = (op: string, what: string, value: number): TensorError =>
  new TensorError(
    'ERR_TENSOR_ARGUMENT',
    `${op}: expected an integer as ${what} for integers, got ${value}. Use .to('float32') on the tensors.`,
  );
