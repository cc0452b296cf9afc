// Padding, as layers. Sizes are one number for all sides, or [before, after] of the last dimension first, as in pad().

import { aNumber, checkValue } from '../../../checks/value-checks.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { badOption, needsRank, shown } from '../../../errors.ts';
import { requireTensor } from '../../../ops/elementwise/convert.ts';
import { type PadMode, pad } from '../../../ops/spatial/pad.ts';
import { Module } from '../../module.ts';

/** One number for all sides, or [left, right, top, bottom, front, back] as far as there are dimensions. */
export type PadSizes = number | readonly number[];

/** Common base of the padding layers. */
abstract class Padding extends Module {
  /** Elements to add, last dimension first: [before, after, before, after, …]. Negative ones cut. */
  readonly sizes: readonly number[];
  /** Value of the added elements in the mode for constants. */
  readonly value: number;
  readonly #mode: PadMode;
  readonly #layer: string;
  readonly #rank: number;

  constructor(layer: string, mode: PadMode, rank: number, sizes: PadSizes, value = 0) {
    super();
    const all = typeof sizes === 'number' ? new Array<number>(2 * rank).fill(sizes) : sizes;
    const fits = Array.isArray(all) && all.length === 2 * rank && all.every(Number.isSafeInteger);
    if (!fits) throw badOption(`${layer}: sizes`, `an integer, or a list of ${2 * rank}`, shown(sizes));
    checkValue(`${layer}: value`, value, aNumber);
    this.sizes = [...all];
    this.value = value;
    this.#mode = mode;
    this.#layer = layer;
    this.#rank = rank;
  }

  /** Takes [batch, channels, …], or the same without batch; returns it with other last sizes. */
  forward(input: Tensor): Tensor {
    requireTensor(this.#layer, input);
    const isConstant = this.#mode === 'constant';
    const [least, most] = [this.#rank + 1, this.#rank + 2];
    if (!isConstant && input.rank !== least && input.rank !== most)
      throw needsRank(this.#layer, `${least} or ${most}`, input.shape);
    return pad(input, this.sizes, isConstant ? { value: this.value } : { mode: this.#mode });
  }
}

/** Pads […, length] with zeros; negative sizes drop elements. */
export class ZeroPad1d extends Padding {
  constructor(sizes: PadSizes) {
    super('ZeroPad1d', 'constant', 1, sizes);
  }
}

/** Pads […, height, width] with zeros; negative sizes drop elements. */
export class ZeroPad2d extends Padding {
  constructor(sizes: PadSizes) {
    super('ZeroPad2d', 'constant', 2, sizes);
  }
}

/** Pads […, depth, height, width] with zeros; negative sizes drop elements. */
export class ZeroPad3d extends Padding {
  constructor(sizes: PadSizes) {
    super('ZeroPad3d', 'constant', 3, sizes);
  }
}

/** Pads […, length] with `value`; negative sizes drop elements. */
export class ConstantPad1d extends Padding {
  constructor(sizes: PadSizes, value: number) {
    super('ConstantPad1d', 'constant', 1, sizes, value);
  }
}

/** Pads […, height, width] with `value`; negative sizes drop elements. */
export class ConstantPad2d extends Padding {
  constructor(sizes: PadSizes, value: number) {
    super('ConstantPad2d', 'constant', 2, sizes, value);
  }
}

/** Pads […, depth, height, width] with `value`; negative sizes drop elements. */
export class ConstantPad3d extends Padding {
  constructor(sizes: PadSizes, value: number) {
    super('ConstantPad3d', 'constant', 3, sizes, value);
  }
}

/** Pads [batch, channels, length] as mirrors at the outermost elements do; the batch may be absent. */
export class ReflectionPad1d extends Padding {
  constructor(sizes: PadSizes) {
    super('ReflectionPad1d', 'reflect', 1, sizes);
  }
}

/** Pads [batch, channels, height, width] as mirrors at the outermost elements do; the batch may be absent. */
export class ReflectionPad2d extends Padding {
  constructor(sizes: PadSizes) {
    super('ReflectionPad2d', 'reflect', 2, sizes);
  }
}

/** Pads [batch, channels, depth, height, width] as mirrors at the outermost elements do; the batch may be absent. */
export class ReflectionPad3d extends Padding {
  constructor(sizes: PadSizes) {
    super('ReflectionPad3d', 'reflect', 3, sizes);
  }
}

/** Pads [batch, channels, length] with the outermost elements; the batch may be absent. */
export class ReplicationPad1d extends Padding {
  constructor(sizes: PadSizes) {
    super('ReplicationPad1d', 'replicate', 1, sizes);
  }
}

/** Pads [batch, channels, height, width] with the outermost elements; the batch may be absent. */
export class ReplicationPad2d extends Padding {
  constructor(sizes: PadSizes) {
    super('ReplicationPad2d', 'replicate', 2, sizes);
  }
}

/** Pads [batch, channels, depth, height, width] with the outermost elements; the batch may be absent. */
export class ReplicationPad3d extends Padding {
  constructor(sizes: PadSizes) {
    super('ReplicationPad3d', 'replicate', 3, sizes);
  }
}

/** Pads [batch, channels, length] with the elements of the other end; the batch may be absent. */
export class CircularPad1d extends Padding {
  constructor(sizes: PadSizes) {
    super('CircularPad1d', 'circular', 1, sizes);
  }
}

/** Pads [batch, channels, height, width] with the elements of the other end; the batch may be absent. */
export class CircularPad2d extends Padding {
  constructor(sizes: PadSizes) {
    super('CircularPad2d', 'circular', 2, sizes);
  }
}

/** Pads [batch, channels, depth, height, width] with the elements of the other end; the batch may be absent. */
export class CircularPad3d extends Padding {
  constructor(sizes: PadSizes) {
    super('CircularPad3d', 'circular', 3, sizes);
  }
}
