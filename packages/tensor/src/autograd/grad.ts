// Computes gradients as results instead of storing them in `grad`.

import { checkOptions, optionChecks } from '../checks/options.ts';
import { aTensor, checkValue, flag, isTensor } from '../checks/value-checks.ts';
import { enableGrad, scope } from '../core/context.ts';
import { sameShape } from '../core/shape.ts';
import { created, type Tensor } from '../core/tensor.ts';
import { denseStorage } from '../core/tensor-grad.ts';
import {
  differentDevices,
  gradDtype,
  gradientShape,
  needsGraph,
  notScalarLoss,
  unusedInput,
} from '../errors.ts';
import { type Root, runBackward } from './backward.ts';
import { type GraphRoot, gradientsWithGraph } from './double.ts';
import type { Captures } from './pass.ts';
import type { GradTarget } from './target.ts';

/** Options of grad(). */
export interface GradOptions {
  /**
   * Gradients of the outputs. Those that are absent or null count as 1; such outputs must have one element.
   */
  readonly gradOutputs?: readonly (Tensor | null)[];
  /** Keeps the graph for another backward. Default false. */
  readonly retainGraph?: boolean;
  /**
   * Whether the gradients get a graph, so that they can be differentiated again: gradient penalties, products with the
   * Hessian. Implies retainGraph. Throws if an operation has no second gradient, and if a tensor between outputs and
   * inputs has a hook.
   */
  readonly createGraph?: boolean;
  /** Returns null for inputs that the outputs do not depend on. Default false: throws. */
  readonly allowUnused?: boolean;
}

const gradOptions = optionChecks<GradOptions>({
  gradOutputs: {
    expected: 'a list of tensors or null, one for each output',
    fits: (value) => Array.isArray(value) && value.every((item) => item === null || isTensor(item)),
  },
  retainGraph: flag,
  createGraph: flag,
  allowUnused: flag,
});

const list = <T>(value: T | readonly T[]): readonly T[] => (Array.isArray(value) ? value : [value as T]);

/** Throws unless `gradient` is one of `output`, which has a graph. Returns the target of the output. */
function checkedRoot(output: Tensor, gradient: Tensor | null): GradTarget {
  checkValue('grad: outputs', output, aTensor);
  if (output.target === null) throw needsGraph('grad: outputs');
  if (gradient === null) {
    if (output.count !== 1) throw notScalarLoss(output.shape);
    return output.target;
  }
  if (!sameShape(gradient.shape, output.shape)) throw gradientShape(gradient.shape, output.shape);
  if (gradient.dtype !== output.dtype) throw gradDtype(gradient.dtype, output.dtype);
  if (gradient.device !== output.device) throw differentDevices('grad', output.device, gradient.device);
  return output.target;
}

function rootOf(output: Tensor, gradient: Tensor | null): Root {
  const target = checkedRoot(output, gradient);
  return { target, gradient: gradient && denseStorage(gradient) };
}

/**
 * Returns the gradients of `inputs`, summed over `outputs`. Inputs may be leaves or results of operations. The `grad`
 * of leaves does not change, and onGradReady and onBackwardEnd are not called. Hooks of tensors run, and retainGrad
 * adds to the `grad` of its tensor.
 */
export function grad(
  outputs: Tensor | readonly Tensor[],
  inputs: Tensor | readonly Tensor[],
  options: GradOptions & { readonly allowUnused: true },
): (Tensor | null)[];
export function grad(
  outputs: Tensor | readonly Tensor[],
  inputs: Tensor | readonly Tensor[],
  options?: GradOptions,
): Tensor[];
export function grad(
  outputs: Tensor | readonly Tensor[],
  inputs: Tensor | readonly Tensor[],
  options: GradOptions = {},
): (Tensor | null)[] {
  checkOptions('grad', options, gradOptions);
  const wanted = list(inputs);
  const captures: Captures = new Map();
  for (const input of wanted) {
    checkValue('grad: inputs', input, aTensor);
    if (input.target === null) throw needsGraph('grad: inputs');
    captures.set(input.target, null);
  }
  if (options.createGraph) return withGraph(list(outputs), wanted, options);
  const roots = list(outputs).map((output, i) => rootOf(output, options.gradOutputs?.[i] ?? null));
  try {
    runBackward(roots, options.retainGraph ?? false, captures);
    return wanted.map((input, i) => {
      const storage = captures.get(input.target!) ?? null;
      if (storage !== null) return created(storage.retain(), input.shape);
      if (options.allowUnused) return null;
      throw unusedInput(i);
    });
  } finally {
    for (const storage of captures.values()) storage?.release();
    for (const root of roots) root.gradient?.release();
  }
}

function withGraph(
  outputs: readonly Tensor[],
  inputs: readonly Tensor[],
  options: GradOptions,
): (Tensor | null)[] {
  const roots = outputs.map((output, i): GraphRoot => {
    const gradient = options.gradOutputs?.[i] ?? null;
    checkedRoot(output, gradient);
    return { output, gradient };
  });
  return scope(() => {
    const gradients = gradientsWithGraph(roots, new Set(inputs.map(({ target }) => target!)));
    return inputs.map((input, i) => {
      const gradient = gradients.get(input.target!);
      // A separate tensor, even if two inputs have the same gradient, or one is the gradient of an output.
      if (gradient !== undefined) return enableGrad(() => gradient.reshape(input.shape));
      if (options.allowUnused) return null;
      throw unusedInput(i);
    });
  });
}
