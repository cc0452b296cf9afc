// Errors of modules, optimizers and files.
import type { DType } from '../core/dtype.ts';
import { argument, dtypeError, type Shape, show, shown, TensorError } from './tensor-error.ts';

/** `next` is a sentence of advice. */
export const badStateDict = (problems: readonly string[], next?: string): TensorError =>
  new TensorError(
    'ERR_TENSOR_STATE_DICT',
    `loadStateDict: ${problems.join('; ')}. Nothing was changed.${next === undefined ? '' : ` ${next}`}`,
  );

export const nameTwice = (model: string, name: string): TensorError =>
  new TensorError(
    'ERR_TENSOR_STATE_DICT',
    `stateDict: two tensors of ${model} have the name '${name}'; expected a name for each. Rename a field; a name with a dot can be that of a field further inside.`,
  );

const assignable = {
  parameter:
    'Expected a parameter, or null. Assign parameter(tensor) before you make the optimizer, or keep the parameter and copy values into it: noGrad(() => layer.weight.copy_(tensor)).',
  buffer: 'Expected a tensor, or null.',
  module: 'Expected a module, or null. Use another field for other values.',
};

export const cannotAssign = (
  model: string,
  name: string,
  kind: keyof typeof assignable,
  value: unknown,
): TensorError =>
  argument(
    `${model}: field '${name}' holds a ${kind}, and was assigned ${shown(value)}. ${assignable[kind]}`,
  );

export const badOptimizerParam = (shape: Shape, dtype: DType, isDense: boolean): TensorError =>
  dtypeError(
    `optimizer: expected dense parameters of float32 or float64, got ${isDense ? '' : 'a strided '}${dtype} ${show(shape)}. ` +
      'For 16 bits keep float32 parameters and use autocast.',
  );

export const scalerOrder = (call: string, when: string): TensorError =>
  new TensorError(
    'ERR_TENSOR_ARGUMENT',
    `GradScaler: ${call} was called ${when}. Expected, for each step: scale, backward, unscale_ (if gradients are clipped), step, update.`,
  );

export const noGradients = (): TensorError =>
  argument(
    'GradScaler: step was called, but no parameter of the optimiser has a gradient. Expected a backward before, of a loss that depends on them.',
  );

export const nonfiniteNorm = (norm: number): TensorError =>
  argument(
    `clipGradNorm: the norm of the gradients is ${norm}. Lower the learning rate, or use detectAnomaly.`,
  );

// Files.

export const badNpy = (path: string, problem: string, cause?: unknown): TensorError =>
  new TensorError('ERR_TENSOR_NPY', `npy: ${path}: ${problem}.`, cause);

export const badSafetensors = (path: string, problem: string, cause?: unknown): TensorError =>
  new TensorError('ERR_TENSOR_SAFETENSORS', `safetensors: ${path}: ${problem}.`, cause);

// Warnings.

/** A warning. `holder`: what the field holds. */
export const hiddenParameter = (type: string, field: string, holder: string): string =>
  `${type}: the field ${field} holds parameters in ${holder}, where a module does not look for them; so they are neither ` +
  'trained nor saved. Use an array, ModuleList, ModuleDict or ParameterDict of @ringwise/tensor/nn.';

/** A warning. */
export const plainTensor = (type: string, field: string): string =>
  `${type}: the tensor in the field ${field} requires a gradient and is no parameter; so it is neither trained nor saved. ` +
  `Make it one: this.${field} = parameter(tensor).`;
