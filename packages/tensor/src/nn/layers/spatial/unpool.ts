// Layers that invert max pooling: they write each pooled element back to its original position.
import { checkOptions } from '../../../checks/options.ts';
import type { Tensor } from '../../../core/tensor.ts';
import type { Pair } from '../../../ops/layers/window.ts';
import {
  type MaxUnpool1dOptions,
  type MaxUnpool3dOptions,
  type MaxUnpoolOptions,
  maxUnpool1d,
  maxUnpool2d,
  maxUnpool3d,
  maxUnpoolOptions,
  unpoolWindow,
} from '../../../ops/spatial/pooling/unpool.ts';
import type { Triple } from '../../../ops/spatial/sizes.ts';
import { Module } from '../../module.ts';

/** Layer of maxUnpool1d(). */
export class MaxUnpool1d extends Module {
  /** Length of the window. */
  readonly kernelSize: number;
  /** Options of the operation, as they were given. */
  readonly options: MaxUnpool1dOptions;

  constructor(kernelSize: number, options: Pick<MaxUnpool1dOptions, 'stride' | 'padding'> = {}) {
    super();
    checkOptions('MaxUnpool1d', options, maxUnpoolOptions);
    unpoolWindow('MaxUnpool1d', kernelSize, options, 1);
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /** Takes the results of maxPool1dWithIndices, and the length of the result if it is not the smallest. */
  forward(input: Tensor, indices: Tensor, outputSize: number | readonly [number] | null = null): Tensor {
    return maxUnpool1d(input, indices, this.kernelSize, { ...this.options, outputSize });
  }
}

/** Layer of maxUnpool2d(). */
export class MaxUnpool2d extends Module {
  /** [height, width] of the window; one number applies to both. */
  readonly kernelSize: Pair;
  /** Options of the operation, as they were given. */
  readonly options: MaxUnpoolOptions;

  constructor(kernelSize: Pair, options: Pick<MaxUnpoolOptions, 'stride' | 'padding'> = {}) {
    super();
    checkOptions('MaxUnpool2d', options, maxUnpoolOptions);
    unpoolWindow('MaxUnpool2d', kernelSize, options, 2);
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /** Takes the results of maxPool2dWithIndices, and [height, width] of the result if it is not the smallest. */
  forward(
    input: Tensor,
    indices: Tensor,
    outputSize: readonly [height: number, width: number] | null = null,
  ): Tensor {
    return maxUnpool2d(input, indices, this.kernelSize, { ...this.options, outputSize });
  }
}

/** Layer of maxUnpool3d(). */
export class MaxUnpool3d extends Module {
  /** [depth, height, width] of the window; one number applies to all. */
  readonly kernelSize: Triple;
  /** Options of the operation, as they were given. */
  readonly options: MaxUnpool3dOptions;

  constructor(kernelSize: Triple, options: Pick<MaxUnpool3dOptions, 'stride' | 'padding'> = {}) {
    super();
    checkOptions('MaxUnpool3d', options, maxUnpoolOptions);
    unpoolWindow('MaxUnpool3d', kernelSize, options, 3);
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /** Takes the results of maxPool3dWithIndices, and the sizes of the result if they are not the smallest. */
  forward(
    input: Tensor,
    indices: Tensor,
    outputSize: readonly [depth: number, height: number, width: number] | null = null,
  ): Tensor {
    return maxUnpool3d(input, indices, this.kernelSize, { ...this.options, outputSize });
  }
}
