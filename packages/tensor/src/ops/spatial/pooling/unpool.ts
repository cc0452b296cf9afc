// Inverts max pooling: writes each pooled element back to its original position.
import { checkOptions, optionChecks } from '../../../checks/options.ts';
import { anything } from '../../../checks/value-checks.ts';
import { scope } from '../../../core/context.ts';
import { zeros } from '../../../core/creation.ts';
import { countOf } from '../../../core/shape.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { badOption, badPlanes, differentShapes, needsIndex, shown } from '../../../errors.ts';
import { requireFloat, requireOperand } from '../../elementwise/convert.ts';
import { scatter } from '../../indexing/scatter.ts';
import type { Pair } from '../../layers/window.ts';
import { reshape } from '../../shape/views.ts';
import { badSignal, badVolume } from '../errors.ts';
import { sizesFor, type Triple } from '../sizes.ts';

/** Options of maxUnpool2d(). */
export interface MaxUnpoolOptions {
  /** Stride of the pooling. Default: the size of the window. */
  readonly stride?: Pair;
  /** Padding of the pooling. Default 0. */
  readonly padding?: Pair;
  /** [height, width] of the result. Default: the smallest plane that the pooling makes x of. */
  readonly outputSize?: readonly [height: number, width: number] | null;
}

/** As MaxUnpoolOptions, for one dimension. */
export interface MaxUnpool1dOptions {
  /** Stride of the pooling that is undone. Default: the size of the kernel. */
  readonly stride?: number;
  /** Padding of the pooling that is undone. Default 0. */
  readonly padding?: number;
  /** Length before the pooling. Default: the smallest one that fits. */
  readonly outputSize?: number | readonly [length: number] | null;
}

/** As MaxUnpoolOptions, for three dimensions. */
export interface MaxUnpool3dOptions {
  /** Stride of the pooling that is undone. Default: the size of the kernel. */
  readonly stride?: Triple;
  /** Padding of the pooling that is undone. Default 0. */
  readonly padding?: Triple;
  /** Sizes before the pooling. Default: the smallest ones that fit. */
  readonly outputSize?: readonly [depth: number, height: number, width: number] | null;
}

export const maxUnpoolOptions = optionChecks<MaxUnpoolOptions>({
  stride: anything,
  padding: anything,
  outputSize: anything,
});

type Sizes = number | readonly number[];
interface AnyOptions {
  readonly stride?: Sizes;
  readonly padding?: Sizes;
  readonly outputSize?: Sizes | null;
}

/** Checks the sizes of the window, and returns them as lists. */
export function unpoolWindow(op: string, kernelSize: Sizes, options: AnyOptions, rank: number) {
  const kernel = sizesFor(`${op}: kernelSize`, kernelSize, rank, 1);
  const stride = sizesFor(`${op}: stride`, options.stride ?? kernel, rank, 1);
  return { kernel, stride, padding: sizesFor(`${op}: padding`, options.padding ?? 0, rank, 0) };
}

const badInput = { 1: badSignal, 2: badPlanes, 3: badVolume };

function unpooled(
  op: string,
  rank: 1 | 2 | 3,
  x: Tensor,
  indices: Tensor,
  kernelSize: Sizes,
  options: AnyOptions,
): Tensor {
  requireFloat(op, x);
  requireOperand(op, 'indices', indices);
  checkOptions(op, options, maxUnpoolOptions);
  const { kernel, stride, padding } = unpoolWindow(op, kernelSize, options, rank);
  const space = x.shape.slice(-rank);
  if ((x.rank !== rank + 1 && x.rank !== rank + 2) || space.includes(0)) throw badInput[rank](op, x.shape);
  if (indices.dtype !== 'int64') throw needsIndex(op, indices.dtype);
  if (indices.shape.join() !== x.shape.join()) throw differentShapes(op, x.shape, indices.shape);
  const smallest = space.map((size, d) => (size - 1) * stride[d]! + kernel[d]! - 2 * padding[d]!);
  const given = options.outputSize ?? null;
  const wanted: readonly number[] = given === null ? smallest : typeof given === 'number' ? [given] : given;
  const fits =
    Array.isArray(wanted) &&
    wanted.length === rank &&
    wanted.every(
      (size, d) =>
        Number.isSafeInteger(size) &&
        size >= 1 &&
        (given === null || Math.abs(size - smallest[d]!) < stride[d]!),
    );
  if (!fits)
    throw badOption(`${op}: outputSize`, `sizes less than a stride from ${shown(smallest)}`, shown(wanted));
  const front = x.shape.slice(0, -rank);
  return scope(() => {
    const flat = [...front, countOf(space)];
    const none = zeros([...front, countOf(wanted)], { dtype: x.dtype, device: x.device });
    return reshape(scatter(none, -1, reshape(indices, flat), reshape(x, flat)), [...front, ...wanted]);
  });
}

/** Returns zeros with the elements of x at `indices`, which maxPool2dWithIndices returned. */
export const maxUnpool2d = (
  x: Tensor,
  indices: Tensor,
  kernelSize: Pair,
  options: MaxUnpoolOptions = {},
): Tensor => unpooled('maxUnpool2d', 2, x, indices, kernelSize, options);

/** Returns zeros with the elements of x [batch, channels, length] at `indices`, from maxPool1dWithIndices. */
export const maxUnpool1d = (
  x: Tensor,
  indices: Tensor,
  kernelSize: number,
  options: MaxUnpool1dOptions = {},
): Tensor => unpooled('maxUnpool1d', 1, x, indices, kernelSize, options);

/**
 * Returns zeros with the elements of x [batch, channels, depth, height, width] at `indices`, from
 * maxPool3dWithIndices.
 */
export const maxUnpool3d = (
  x: Tensor,
  indices: Tensor,
  kernelSize: Triple,
  options: MaxUnpool3dOptions = {},
): Tensor => unpooled('maxUnpool3d', 3, x, indices, kernelSize, options);
