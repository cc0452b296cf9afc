// Layers without parameters: ReLU and Flatten. activations.ts has others.

import { checkValue, integer } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { flatten, relu } from '../../ops/index.ts';
import { Module } from '../module.ts';

/** Layer of relu(). */
export class ReLU extends Module {
  forward(input: Tensor): Tensor {
    return relu(input);
  }
}

/** Flattens dimensions startDim … endDim into one; by default all but the first. */
export class Flatten extends Module {
  readonly startDim: number;
  readonly endDim: number;

  constructor(startDim = 1, endDim = -1) {
    super();
    checkValue('Flatten: startDim', startDim, integer);
    checkValue('Flatten: endDim', endDim, integer);
    this.startDim = startDim;
    this.endDim = endDim;
  }

  forward(input: Tensor): Tensor {
    return flatten(input, this.startDim, this.endDim);
  }
}
