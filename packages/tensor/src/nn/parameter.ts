// Marks tensors as parameters, which a module trains, saves and loads. Frozen parameters keep the mark.
import { notOneTensor } from '../checks/argument-errors.ts';
import { keep } from '../core/context.ts';
import { Tensor } from '../core/tensor.ts';

const parameters = new WeakSet<Tensor>();

/** Makes `tensor` a parameter: it requires a gradient, and neither scopes nor backward dispose it. */
export function parameter(tensor: Tensor): Tensor {
  if (!(tensor instanceof Tensor)) throw notOneTensor('parameter', tensor);
  tensor.requiresGrad = true;
  parameters.add(keep(tensor));
  return tensor;
}

export const isParameter = (value: unknown): value is Tensor =>
  value instanceof Tensor && parameters.has(value);
