// Makes the parameters of layers, in float32 on the CPU, with initial values. Random values come from the default
// generator. initializers.ts has the public functions that write into existing tensors.

import type { RandomKind } from '../backends/declarations/names.ts';
import { kernels } from '../backends/index.ts';
import { allocate } from '../core/memory/storage.ts';
import { countOf, type Shape } from '../core/shape.ts';
import { Tensor } from '../core/tensor.ts';
import { defaultGenerator } from '../random/random.ts';
import { parameter } from './parameter.ts';

function drawnParameter(kind: RandomKind, shape: Shape, low: number, high: number): Tensor {
  const count = countOf(shape);
  const storage = allocate('float32', count);
  const stream = defaultGenerator().take(count);
  kernels().random({ out: storage.dense }, { kind, count, stream, low, high });
  return parameter(new Tensor(storage, shape));
}

/** Makes a parameter that is uniform in [−bound, bound). */
export const uniformParameter = (shape: Shape, bound: number): Tensor =>
  drawnParameter('uniform', shape, -bound, bound);

/** Makes a parameter that is normal with mean 0 and variance 1. */
export const normalParameter = (shape: Shape): Tensor => drawnParameter('normal', shape, 0, 0);

/** Makes a parameter whose elements are all `value`. */
export function constantParameter(shape: Shape, value: number): Tensor {
  const storage = allocate('float32', countOf(shape));
  kernels().copy(shape, storage.dense, value);
  return parameter(new Tensor(storage, shape));
}
