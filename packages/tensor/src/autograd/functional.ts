// Derivatives of functions of tensors, made of grad(). The functions are called with tensors over the memory of the
// inputs, so the inputs' own graphs and gradients stay as they are. Results have no graph.
import { aFunction, aTensor, aTensorList, checkValue } from '../checks/value-checks.ts';
import { enableGrad, scope } from '../core/context.ts';
import { zeros, zerosLike } from '../core/creation.ts';
import { sameShape } from '../core/shape.ts';
import type { Tensor } from '../core/tensor.ts';
import { badOption, gradDtype, gradientShape, notScalarOutput, shown } from '../errors.ts';
import { grad } from './grad.ts';

type TensorFunction = (...inputs: Tensor[]) => Tensor;

/** Returns tensors over the memory of the inputs that require a gradient. */
function leavesOf(op: string, inputs: readonly Tensor[]): Tensor[] {
  return inputs.map((input, i) => {
    checkValue(`${op}: input ${i}`, input, aTensor);
    const leaf = input.detach();
    leaf.requiresGrad = true;
    return leaf;
  });
}

function checkVectors(op: string, inputs: readonly Tensor[], vectors: readonly Tensor[]): void {
  checkValue(`${op}: inputs`, inputs, aTensorList);
  if (!Array.isArray(vectors) || vectors.length !== inputs.length)
    throw badOption(
      `${op}: vectors`,
      `a list of ${inputs.length} tensors, one for each input`,
      shown(vectors),
    );
  for (const [i, vector] of vectors.entries()) {
    checkValue(`${op}: vector ${i}`, vector, aTensor);
    if (!sameShape(vector.shape, inputs[i]!.shape)) throw gradientShape(vector.shape, inputs[i]!.shape);
    if (vector.dtype !== inputs[i]!.dtype) throw gradDtype(vector.dtype, inputs[i]!.dtype);
  }
}

/** Calls `fn` with operations recorded. Throws unless it returns a tensor. */
function outputOf(op: string, fn: TensorFunction, inputs: readonly Tensor[]): Tensor {
  const output = fn(...inputs);
  checkValue(`${op}: the result of the function`, output, aTensor);
  return output;
}

/**
 * Returns the gradients of the sum of gradients times `vectors`. Null is for gradients that do not depend on the
 * inputs.
 */
function gradientsOf(
  gradients: readonly (Tensor | null)[],
  vectors: readonly Tensor[],
  inputs: readonly Tensor[],
): Tensor[] {
  const kept = [...gradients.keys()].filter((i) => gradients[i]?.requiresGrad);
  if (kept.length === 0) return inputs.map((input) => zerosLike(input));
  const found = grad(
    kept.map((i) => gradients[i]!),
    inputs,
    { gradOutputs: kept.map((i) => vectors[i]!), allowUnused: true, retainGraph: true },
  );
  return found.map((gradient, i) => gradient ?? zerosLike(inputs[i]!));
}

/**
 * Computes a function and its derivative along `vectors`, one for each input and of its shape: the Jacobian times the
 * vectors (forward-mode differentiation, by two backwards). Throws if an operation of `fn` has no second gradient.
 *
 * @example
 * ```ts
 * import { jvp, tensor } from '@ringwise/tensor';
 *
 * const x = tensor([0, 1]);
 * const { product } = jvp((a) => a.sin(), [x], [tensor([1, 1])]); // cos(x)
 * ```
 */
export function jvp(
  fn: TensorFunction,
  inputs: readonly Tensor[],
  vectors: readonly Tensor[],
): { readonly output: Tensor; readonly product: Tensor } {
  checkValue('jvp', fn, aFunction);
  checkVectors('jvp', inputs, vectors);
  return scope(() =>
    enableGrad(() => {
      const leaves = leavesOf('jvp', inputs);
      const output = outputOf('jvp', fn, leaves);
      if (!output.requiresGrad) return { output: output.detach(), product: zerosLike(output) };
      // The gradients are linear in `weights`; their derivative by `weights` is the Jacobian.
      const weights = zerosLike(output);
      weights.requiresGrad = true;
      const options = { gradOutputs: [weights], createGraph: true, allowUnused: true } as const;
      const [product] = gradientsOf(grad(output, leaves, options), vectors, [weights]);
      return { output: output.detach(), product: product! };
    }),
  );
}

/**
 * Computes a function with one number as result, and its Hessian times `vectors`, one for each input and of its shape.
 * Throws if an operation of `fn` has no second gradient.
 */
export function hvp(
  fn: TensorFunction,
  inputs: readonly Tensor[],
  vectors: readonly Tensor[],
): { readonly output: Tensor; readonly products: Tensor[] } {
  checkValue('hvp', fn, aFunction);
  checkVectors('hvp', inputs, vectors);
  return scope(() =>
    enableGrad(() => {
      const leaves = leavesOf('hvp', inputs);
      const output = outputOf('hvp', fn, leaves);
      if (output.count !== 1) throw notScalarOutput('hvp', output.shape);
      if (!output.requiresGrad)
        return { output: output.detach(), products: leaves.map((leaf) => zerosLike(leaf)) };
      const gradients = grad(output, leaves, { createGraph: true, allowUnused: true });
      return { output: output.detach(), products: gradientsOf(gradients, vectors, leaves) };
    }),
  );
}

/** Returns the gradients of each element of `output`, [...shape of output, ...shape of input]. */
function rowsOf(output: Tensor, input: Tensor): Tensor {
  const { dtype, device } = input;
  const all = zeros([output.count, ...input.shape], { dtype, device });
  if (output.requiresGrad) {
    for (let i = 0; i < output.count; i++)
      scope(() => {
        const unit = zerosLike(output);
        unit.reshape([output.count]).select(0, i).fill_(1);
        const options = { gradOutputs: [unit], retainGraph: true, allowUnused: true } as const;
        const [row] = grad(output, input, options);
        if (row) all.select(0, i).copy_(row);
      });
  }
  return all.reshape([...output.shape, ...input.shape]);
}

/** Returns all derivatives of a function of one tensor: [...shape of the result, ...shape of the input]. */
export function jacobian(fn: TensorFunction, input: Tensor): Tensor {
  checkValue('jacobian', fn, aFunction);
  return scope(() =>
    enableGrad(() => {
      const [leaf] = leavesOf('jacobian', [input]) as [Tensor];
      return rowsOf(outputOf('jacobian', fn, [leaf]), leaf);
    }),
  );
}

/**
 * Returns all second derivatives of a function of one tensor with one number as result: [...shape, ...shape]. Throws if
 * an operation of `fn` has no second gradient.
 */
export function hessian(fn: TensorFunction, input: Tensor): Tensor {
  checkValue('hessian', fn, aFunction);
  return scope(() =>
    enableGrad(() => {
      const [leaf] = leavesOf('hessian', [input]) as [Tensor];
      const output = outputOf('hessian', fn, [leaf]);
      if (output.count !== 1) throw notScalarOutput('hessian', output.shape);
      const options = { createGraph: true, allowUnused: true } as const;
      const [gradient] = output.requiresGrad ? grad(output, leaf, options) : [null];
      return rowsOf(gradient ?? zerosLike(leaf), leaf);
    }),
  );
}
