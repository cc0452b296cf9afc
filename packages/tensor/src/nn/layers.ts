// Layers without parameters, and layers in a row.
import { flatten, relu } from '../ops/index.ts';
import type { Tensor } from '../tensor.ts';
import { type Layer, Module } from './module.ts';

export class ReLU extends Module {
  forward(input: Tensor): Tensor {
    return relu(input);
  }
}

/** Makes one dimension of startDim … endDim; by default of all but the first. */
export class Flatten extends Module {
  readonly startDim: number;
  readonly endDim: number;

  constructor(startDim = 1, endDim = -1) {
    super();
    this.startDim = startDim;
    this.endDim = endDim;
  }

  forward(input: Tensor): Tensor {
    return flatten(input, this.startDim, this.endDim);
  }
}

/** Runs layers one after the other. Parameters are named as in PyTorch: "0.weight". */
export class Sequential extends Module {
  readonly layers: readonly Layer[];

  constructor(...layers: readonly Layer[]) {
    super();
    this.layers = layers;
  }

  protected override members(): Iterable<[string, unknown]> {
    return Object.entries(this.layers);
  }

  forward(input: Tensor): Tensor {
    let output = input;
    for (const layer of this.layers) output = layer.forward(output);
    return output;
  }
}
