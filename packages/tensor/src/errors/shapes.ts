// Errors about shapes.
import type { DType } from '../core/dtype.ts';
import {
  almostTensor,
  argument,
  dtypeError,
  type Shape,
  shapeError,
  show,
  shown,
  type TensorError,
} from './tensor-error.ts';

export const badShape = (op: string, shape: Shape): TensorError => {
  const next = typeof shape === 'number' ? ` Put the sizes into an array, such as [${shape as number}].` : '';
  return shapeError(`${op}: expected an array of sizes that are integers ≥ 0, got ${shown(shape)}.${next}`);
};

export const tooManyDims = (op: string, most: number, shape: Shape): TensorError =>
  shapeError(
    `${op}: expected at most ${most} dimensions, got ${shape.length}: ${show(shape)}. Flatten some of them.`,
  );

export const broadcastFailed = (op: string, a: Shape, b: Shape): TensorError =>
  shapeError(
    `${op}: cannot broadcast ${show(a)} with ${show(b)}; aligned at the end, sizes must be equal or 1. Use reshape or unsqueeze.`,
  );

export const cannotStretchInto = (op: string, from: Shape, into: Shape): TensorError =>
  shapeError(
    `${op}: cannot stretch ${show(from)} to ${show(into)}, the shape of the tensor that is changed.`,
  );

export const writtenTwice = (op: string, shape: Shape): TensorError =>
  shapeError(
    `${op}: elements of the tensor ${show(shape)} share memory, as those that expand() made, or windows of unfold(); they cannot be written one by one. ` +
      'Change a clone() of it.',
  );

export const floatIntoInteger = (op: string, from: DType, to: DType): TensorError =>
  dtypeError(
    `${op}: the result is ${from}, and the tensor is ${to}. Use the operation without underscore, or to().`,
  );

export const notATensor = (op: string, got: unknown): TensorError => {
  const almost = typeof got === 'object' && got !== null ? almostTensor(got) : null;
  const kind = almost ?? (got === null ? 'null' : Array.isArray(got) ? 'an array' : typeof got);
  return argument(`${op}: expected a tensor or a number, got ${kind}.`);
};

export const badDim = (op: string, dim: number, rank: number): TensorError =>
  rank === 0
    ? shapeError(`${op}: dimension ${shown(dim)} of a tensor without dimensions. Use unsqueeze(0) first.`)
    : shapeError(`${op}: expected a dimension from ${-rank} to ${rank - 1}, got ${shown(dim)}.`);

export const repeatedDim = (op: string, dim: number): TensorError =>
  shapeError(`${op}: expected each dimension at most once, got dimension ${dim} a second time.`);

export const cannotReshape = (from: Shape, to: Shape): TensorError =>
  shapeError(`reshape: cannot make ${show(to)} of ${show(from)}; the number of elements must stay the same.`);

/** `rank`: a number of dimensions, or words for several, such as '2 or 3'. */
export const needsRank = (op: string, rank: number | string, shape: Shape): TensorError =>
  shapeError(`${op}: expected ${rank} dimensions, got shape ${show(shape)}.`);

export const badExpand = (from: Shape, to: Shape): TensorError =>
  shapeError(
    `expand: cannot stretch ${show(from)} to ${show(to)}; aligned at the end, sizes must be equal, or 1 in the tensor. −1 keeps a size.`,
  );

export const cannotView = (from: Shape, to: Shape): TensorError =>
  shapeError(
    `view: no strides give ${show(to)} over the memory of ${show(from)}, which is not dense. Use reshape, which copies, or contiguous() first.`,
  );

export const badPermutation = (dims: Shape, rank: number): TensorError =>
  shapeError(`permute: expected each dimension from 0 to ${rank - 1} once, got ${show(dims)}.`);

export const badRange = (op: string, dim: number, start: number, length: number, size: number): TensorError =>
  shapeError(
    `${op}: ${length} elements from ${start} on are not inside dimension ${dim}, which has size ${size}.`,
  );

export const badIndex = (op: string, index: number, dim: number, size: number): TensorError =>
  shapeError(`${op}: index ${index} is out of range for dimension ${dim} of size ${size}.`);

export const tooManyIndices = (op: string, count: number, shape: Shape): TensorError =>
  shapeError(`${op}: ${count} indices for shape ${show(shape)}.`);

export const maskShape = (op: string, mask: Shape, shape: Shape): TensorError =>
  shapeError(
    `${op}: a mask of shape ${show(mask)} does not fit the dimensions ${show(shape)} that it indexes.`,
  );

export const badSizes = (op: string, sizes: Shape, size: number): TensorError =>
  shapeError(`${op}: expected sizes ≥ 0 that add up to ${size}, got ${shown(sizes)}.`);

export const joinShapes = (op: string, first: Shape, other: Shape): TensorError =>
  shapeError(
    `${op}: expected equal sizes in all other dimensions, got ${show(first)} beside ${show(other)}.`,
  );

export const lookupShapes = (op: string, shape: Shape, index: Shape): TensorError =>
  shapeError(`${op}: an index of shape ${show(index)} does not fit into shape ${show(shape)}.`);

export const differentShapes = (op: string, a: Shape, b: Shape): TensorError =>
  shapeError(`${op}: expected equal shapes, got ${show(a)} and ${show(b)}.`);

export const emptyReduction = (op: string, shape: Shape): TensorError =>
  shapeError(`${op}: nothing to choose from, as a dimension of ${show(shape)} that is reduced has size 0.`);

export const badMatmul = (a: Shape, b: Shape): TensorError =>
  shapeError(
    `matmul: cannot multiply ${show(a)} by ${show(b)}; expected [..., m, k] and [..., k, n], where either may be a vector [k].`,
  );

export const badLinear = (x: Shape, w: Shape, b: Shape | null): TensorError =>
  shapeError(
    `linear: expected x [..., in], w [out, in] and b [out], got x ${show(x)}, w ${show(w)}, b ${b ? show(b) : 'null'}.`,
  );

export const badConv = (x: Shape, w: Shape, b: Shape | null, groups: number): TensorError =>
  shapeError(
    `conv2d: expected x [batch, in, height, width], w [out, in / ${groups}, kernel height, kernel width] and b [out], where in and out are multiples of groups ${groups}; got x ${show(x)}, w ${show(w)}, b ${b ? show(b) : 'null'}. x may lack the batch.`,
  );

export const windowTooLarge = (op: string, kernel: Shape, dilation: Shape, plane: Shape): TensorError =>
  shapeError(
    `${op}: a window of ${show(kernel)} with dilation ${show(dilation)} does not fit into a plane of ${show(plane)} and its padding. Pad more, or take a smaller window.`,
  );

export const badPlanes = (op: string, shape: Shape): TensorError =>
  shapeError(
    `${op}: expected [batch, channels, height, width] or [channels, height, width] with planes that are not empty, got ${show(shape)}.`,
  );

export const badChannels = (op: string, what: string, shape: Shape, channels: number): TensorError =>
  shapeError(`${op}: expected ${what} of shape [${channels}], one for each channel, got ${show(shape)}.`);

export const oneValuePerChannel = (shape: Shape): TensorError =>
  shapeError(
    `batchNorm: expected more than one value per channel to train on, got shape ${show(shape)}. Use eval(), or a larger batch.`,
  );

export const noRunningStatistics = (): TensorError =>
  argument(
    'batchNorm: no running statistics to normalise by. Pass { training: true }, which uses those of the batch.',
  );

export const wrongCount = (op: string, shape: Shape, count: number): TensorError =>
  shapeError(`${op}: expected as many elements as shape ${show(shape)} has, got ${count}.`);

export const raggedData = (first: Shape, other: Shape): TensorError =>
  shapeError(`tensor: nested arrays differ in shape: ${show(first)} beside ${show(other)}.`);

export const notOneElement = (what: string, shape: Shape): TensorError =>
  shapeError(`${what}: expected one element, got shape ${show(shape)}. Use toArray() or dataSync().`);

export const badNormShape = (op: string, x: Shape, shape: Shape): TensorError =>
  shapeError(
    `${op}: expected an input whose last dimensions are the normalised shape ${show(shape)}, at least one, got ${show(x)}.`,
  );

export const badAttention = (op: string, q: Shape, k: Shape, v: Shape): TensorError =>
  shapeError(
    `${op}: expected q [..., queries, width], k [..., keys, width] and v [..., keys, any] with a batch and heads in front that are equal, or 1, got q ${show(q)}, k ${show(k)}, v ${show(v)}. Set enableGqa where several heads of q share one of k and v.`,
  );

export const badAttentionMaskShape = (op: string, mask: Shape, full: Shape): TensorError =>
  shapeError(
    `${op}: cannot stretch a mask of shape ${show(mask)} to ${show(full)}, which is [..., queries, keys]; aligned at the end, sizes must be equal, or 1 in the mask.`,
  );

export const badPackedAttention = (shape: Shape, heads: number): TensorError =>
  shapeError(
    `selfAttention: expected qkv [..., time, 3 · channels] with channels that ${heads} heads share evenly, got ${show(shape)}.`,
  );
