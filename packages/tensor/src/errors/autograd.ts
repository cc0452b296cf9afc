// Errors of the graph and its gradients.
import type { DType } from '../core/dtype.ts';
import { argument, autograd, type Shape, show, shown, TensorError } from './tensor-error.ts';

export const noGraph = (): TensorError =>
  autograd(
    'backward: the tensor depends on nothing that requires a gradient. Set requiresGrad on a tensor it is made of, and do not compute it inside noGrad.',
  );

export const notScalarLoss = (shape: Shape): TensorError =>
  autograd(
    `backward: expected a tensor with one element, got shape ${show(shape)}. Reduce it, or pass its gradient.`,
  );

export const notScalarOutput = (op: string, shape: Shape): TensorError =>
  autograd(
    `${op}: expected a function that returns one element, got shape ${show(shape)}. Reduce the result.`,
  );

export const gradientShape = (gradient: Shape, tensor: Shape): TensorError =>
  autograd(`backward: expected a gradient of shape ${show(tensor)}, got ${show(gradient)}.`);

export const graphUsedTwice = (name: string): TensorError =>
  autograd(
    `backward: the graph was freed by an earlier backward (reached '${name}'). Pass { retainGraph: true } to the earlier one, or compute the loss again.`,
  );

export const notTwiceDifferentiable = (name: string): TensorError =>
  autograd(
    `grad: createGraph needs the gradient of every operation as tensors, which '${name}' does not have. Write it with other operations, or leave createGraph out.`,
  );

export const hooksInGraph = (): TensorError =>
  autograd(
    'grad: with createGraph, tensors between outputs and inputs must not have hooks (registerHook, retainGrad). Remove the hooks, or leave createGraph out.',
  );

export const weightGradient = (op: string): TensorError =>
  autograd(`${op}: no gradient reaches the weight, and this one requires it. Use weight.detach().`);

export const savedValueChanged = (name: string): TensorError =>
  autograd(
    `backward: a value that '${name}' saved was changed in place afterwards. Change it after backward, or clone() it first.`,
  );

export const recordedInPlace = (op: string): TensorError =>
  autograd(
    `${op}: cannot change a tensor in place while operations on it are recorded. Use noGrad, or the operation without underscore.`,
  );

// Reasons why other packages must not write a tensor's memory. They quote them in their errors: BufferView.readOnly.

export const leafIsReadOnly = {
  reason: 'the tensor requires a gradient, and operations are recorded: backward would not see the change',
  next: 'To set its values, call it inside noGrad(() => …); for a result with a gradient, use across(group); to average gradients, use ddp(), or tensor.grad.',
};

export const resultIsReadOnly = {
  reason: 'operations made the tensor and are recorded: its gradient would be that of the value before',
  next: 'For a result with a gradient, use across(group); for the values alone, call it inside noGrad(() => …), or on a copy without a graph, tensor.detach().clone(). Gradients are averaged by ddp(), after backward.',
};

export const notALeaf = (what: string): TensorError =>
  autograd(
    `${what}: expected a tensor that requires a gradient and was not made by an operation. Use a parameter, or detach().`,
  );

export const badBoundGrad = (count: number, dtype: DType, array: unknown): TensorError => {
  const got = ArrayBuffer.isView(array)
    ? `${array.constructor.name} of ${(array as Float32Array).length}`
    : typeof array;
  return autograd(`bindGrad: expected an array of ${count} elements of ${dtype}, got ${got}.`);
};

export const boundGrad = (): TensorError =>
  autograd(
    'to: the gradient of a parameter is bound to memory of its present dtype and device. Convert the module before it is wrapped.',
  );

export const needsGraph = (what: string): TensorError =>
  autograd(
    `${what}: expected a tensor that requires a gradient. Set requiresGrad, or compute it outside of noGrad.`,
  );

export const hookGradient = (what: string, got: string, expected: string): TensorError =>
  autograd(`${what}: expected a gradient of ${expected}, got ${got}.`);

export const noResult = (name: string, got: unknown): TensorError =>
  argument(`${name}: expected forward to return a tensor, got ${shown(got)}.`);

export const gradientCount = (name: string, expected: number, got: number | string): TensorError =>
  autograd(`${name}: expected a gradient, or null, for each of ${expected} inputs, got ${got}.`);

export const notArguments = (got: unknown): TensorError =>
  argument(
    `registerForwardPreHook: the hook returned ${shown(got)}; expected undefined, an array of the arguments of forward, or a tensor as the only one.`,
  );

export const inputsHaveNoGradient = (): TensorError =>
  autograd(
    'registerFullBackwardHook: the hook returned gradients, and no argument of forward requires one. Return undefined.',
  );

export const unusedInput = (position: number): TensorError =>
  autograd(
    `grad: the outputs do not depend on input ${position}. Pass { allowUnused: true } to get null for it.`,
  );

export const checkpointChanged = (): TensorError =>
  autograd(
    'checkpoint: the function returned another shape, or no gradient, when it was run again. It must depend on its inputs, on parameters and on the default generator only.',
  );

/** Returns the location of an operation's call: the first frame of the stack outside of this package's sources. */
function callSite(site: Error): string {
  const lines = (site.stack ?? '').split('\n').slice(1);
  const ours = /[\\/]tensor[\\/](src|dist)[\\/]/;
  return (lines.find((line) => !ours.test(line) && !line.includes('node:')) ?? lines.at(-1) ?? '').trim();
}

const anomaly = (what: string, value: number, shape: Shape, site: Error): TensorError =>
  new TensorError(
    'ERR_TENSOR_ANOMALY',
    `detectAnomaly: ${what} has ${value} (result of shape ${show(shape)}, called ${callSite(site)}). Earlier operations that were checked had no NaN and no +Infinity.`,
    site,
  );

export const anomalyForward = (op: string, value: number, shape: Shape, site: Error): TensorError =>
  anomaly(`the result of '${op}'`, value, shape, site);

export const anomalyBackward = (op: string, value: number, shape: Shape, site: Error): TensorError =>
  anomaly(`a gradient that '${op}' sent`, value, shape, site);

export interface GradMismatch {
  readonly input: number;
  readonly index: number;
  readonly analytic: number;
  readonly numeric: number;
}

export const gradMismatch = ({ input, index, analytic, numeric }: GradMismatch): TensorError =>
  new TensorError(
    'ERR_TENSOR_GRAD_CHECK',
    `gradCheck: gradient of input ${input} at element ${index} is ${analytic}, but finite differences give ${numeric}.`,
  );
