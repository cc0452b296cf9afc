// Compares gradients with central differences. The output is multiplied with fixed random weights and summed
// in float64, so that one backward per call and two forwards per element are enough, and the sum adds hardly
// any rounding error.

import { checkOptions, optionChecks } from '../checks/options.ts';
import { aFunction, aTensor, aTensorList, checkValue, positive } from '../checks/value-checks.ts';
import { noGrad, scope } from '../core/context.ts';
import { fromHost } from '../core/creation.ts';
import type { Tensor } from '../core/tensor.ts';
import { badOption, gradMismatch } from '../errors.ts';
import { generator } from '../random/random.ts';

/** Options of gradCheck(). */
export interface GradCheckOptions {
  /** Step of the differences. Default 1e-2, because float32 has seven digits. */
  readonly epsilon?: number;
  /** Allowed error, absolute and relative to the gradient. Default 2e-3. */
  readonly tolerance?: number;
}

const gradCheckOptions = optionChecks<GradCheckOptions>({ epsilon: positive, tolerance: positive });

/** Throws unless finite differences can be computed for an input. */
function checkInput(i: number, input: Tensor): void {
  checkValue(`gradCheck: input ${i}`, input, aTensor);
  if (!input.requiresGrad) return;
  const isFitting = input.isLeaf && input.isContiguous && input.device === 'cpu';
  if (isFitting && (input.dtype === 'float32' || input.dtype === 'float64')) return;
  const kind = input.isLeaf ? 'a' : 'the result of an operation, a';
  const got = `${kind} tensor of ${input.dtype} on ${input.device}${input.isContiguous ? '' : ', not contiguous'}`;
  throw badOption(`gradCheck: input ${i}`, 'a contiguous leaf of float32 or float64 on the CPU', got);
}

/**
 * Compares backward of `fn` with finite differences, for every element of every input that requires a gradient. Throws
 * ERR_TENSOR_GRAD_CHECK for the first element that differs. `fn` must be deterministic and smooth around the inputs; an
 * input that it does not use has the gradient 0. Inputs and output are float32 or float64 on the CPU. Inputs are
 * contiguous leaves: their elements are changed in place and restored. Drops the gradients of the inputs.
 */
export function gradCheck(
  fn: (...inputs: Tensor[]) => Tensor,
  inputs: readonly Tensor[],
  options: GradCheckOptions = {},
): void {
  checkValue('gradCheck', fn, aFunction);
  checkOptions('gradCheck', options, gradCheckOptions);
  checkValue('gradCheck: inputs', inputs, aTensorList);
  for (const [i, input] of inputs.entries()) checkInput(i, input);
  const { epsilon = 1e-2, tolerance = 2e-3 } = options;
  const weights = analyticGradients(fn, inputs);
  const projected = (): number =>
    scope(() => {
      const out = noGrad(() => fn(...inputs)).dataSync() as Float32Array;
      return out.reduce((total, value, i) => total + value * weights[i]!, 0);
    });

  for (const [input, tensor] of inputs.entries()) {
    if (!tensor.requiresGrad) continue;
    const values = tensor.dataSync() as Float32Array;
    const grads = tensor.grad?.dataSync() as Float32Array | undefined;
    /** Returns the value of the element at `index` moved by `step`, and the projection there. */
    const moved = (index: number, step: number): [at: number, projection: number] => {
      const original = values[index]!;
      values[index] = original + step;
      try {
        return [values[index], projected()];
      } finally {
        values[index] = original;
      }
    };
    for (let index = 0; index < values.length; index++) {
      const [right, above] = moved(index, epsilon);
      const [left, below] = moved(index, -epsilon);
      const numeric = (above - below) / (right - left);
      const analytic = grads?.[index] ?? 0;
      const allowed = tolerance * (1 + Math.abs(numeric));
      if (!(Math.abs(numeric - analytic) <= allowed)) throw gradMismatch({ input, index, analytic, numeric });
    }
    tensor.zeroGrad();
  }
}

/** Computes the gradients of the inputs for the weighted sum of the output. Returns the weights. */
function analyticGradients(fn: (...inputs: Tensor[]) => Tensor, inputs: readonly Tensor[]): Float32Array {
  for (const tensor of inputs) if (tensor.requiresGrad) tensor.zeroGrad();
  return scope(() => {
    const out = fn(...inputs);
    const weights = new Float32Array(out.count);
    generator(1).uniform(weights, 0.5, 1.5);
    out.backward(fromHost(weights, out.shape).to(out.dtype));
    return weights;
  });
}
