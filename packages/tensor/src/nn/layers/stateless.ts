// Layers without parameters: ReLU and Flatten. activations.ts has others.

import { checkValue, integer } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { flatten, relu } from '../../ops/index.ts';
import { Module } from '../module.ts';

/** Layer of relu(). */
export class ReLU extends Module {
  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return relu(input);
  }
}

/** Flattens dimensions startDim … endDim into one; by default all but the first. */
export class Flatten extends Module {
  /** First dimension that is flattened. */
  readonly startDim: number;
  /** Last dimension that is flattened. */
  readonly endDim: number;

  constructor(startDim = 1, endDim = -1) {
    super();
    checkValue('Flatten: startDim', startDim, integer);
    checkValue('Flatten: endDim', endDim, integer);
    this.startDim = startDim;
    this.endDim = endDim;
  }

  /** Returns the same elements with fewer dimensions. */
  forward(input: Tensor): Tensor {
    return flatten(input, this.startDim, this.endDim);
  }
}
