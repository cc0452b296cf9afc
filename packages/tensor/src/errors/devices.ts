// Errors about devices, memory that is lent to others, and captured steps.
import { dtypes } from '../core/dtype.ts';
import { argument, autograd, type Shape, shapeError, show, shown, TensorError } from './tensor-error.ts';
import { meantDtype } from './values.ts';

const deviceError = (message: string, cause?: unknown): TensorError =>
  new TensorError('ERR_TENSOR_DEVICE', message, cause);

export const badDevice = (name: unknown): TensorError =>
  deviceError(`device: expected 'cpu', 'cuda' or 'cuda:N', got ${shown(name)}.`);

/** Error for a name that is neither a dtype nor a device. */
export const badTarget = (op: string, name: unknown): TensorError =>
  deviceError(
    `${op}: expected 'cpu', 'cuda' or 'cuda:N', or a dtype (${dtypes.join(', ')}), got ${shown(name)}.${meantDtype(name)}`,
  );

export const differentDevices = (op: string, a: string, b: string): TensorError =>
  deviceError(`${op}: expected tensors on one device, got ${a} and ${b}. Move one with to('${a}').`);

export const notOnHost = (what: string, device: string): TensorError =>
  deviceError(`${what}: expected a tensor in host memory, got one on ${device}. Use to('cpu').`);

export const onlyOnHost = (device: string): TensorError =>
  deviceError(
    `reference kernels: expected device 'cpu', got '${device}'. Unset RINGWISE_KERNELS to take the native ones.`,
  );

export const onlyOnCuda = (what: string): TensorError =>
  deviceError(`${what}: expected a CUDA device, got 'cpu'.`);

export const onlyPinnedOnHost = (device: string): TensorError =>
  deviceError(`pinMemory: expected a tensor in host memory, got one on ${device}. Use .to('cpu').`);

export const nothingPins = (cause: unknown): TensorError =>
  deviceError(
    `pinMemory: expected a CUDA device, which pins memory of the host; ${(cause as Error).message}`,
    cause,
  );

export const noAddresses = (): TensorError =>
  deviceError(
    'reference kernels: memory has no address that other libraries could use. Unset RINGWISE_KERNELS to take the native ones.',
  );

/** The text of a warning. */
export const slowConvolutions = (device: string, reason: string): string =>
  `conv2d: large convolutions on ${device} are computed by our own kernels, which take many times as long as cuDNN; cuDNN could not be loaded: ${reason}. Install it (pip install nvidia-cudnn-cu13), or set RINGWISE_LIBCUDNN to its path.`;

/** The text of a warning. */
export const slowProducts = (device: string, reason: string): string =>
  `matmul: large products on ${device} are computed by our own kernels, which take several times as long as cublasLt; cublasLt could not be loaded: ${reason}. Install it (pip install nvidia-cublas, or the CUDA toolkit), or set RINGWISE_LIBCUBLASLT to its path.`;

// Handles.

export const badHandle = (what: string, expected: string, got: unknown, text = shown(got)): TensorError =>
  argument(`fromHandle: expected ${what} ${expected}, got ${text}.`);

export const outsideHandle = (shape: Shape, strides: Shape, reach: number, count: number): TensorError =>
  shapeError(
    `fromHandle: shape ${show(shape)} with strides ${show(strides)} reaches over ${reach} elements, but the memory of the handle has ${count}.`,
  );

export const spentHandle = (): TensorError =>
  argument(
    'fromHandle: this handle has been taken or released before, and its memory may be gone. Ask its owner for a new one.',
  );

export const gradientInHandle = (shape: Shape): TensorError =>
  autograd(
    `handle: no gradient follows the tensor ${show(shape)} into other libraries. Use detach().handle().`,
  );

// Captured steps.

const captureError = (message: string): TensorError => new TensorError('ERR_TENSOR_CAPTURE', message);

export const notCapturable = (what: string, device: string): TensorError =>
  captureError(
    `compile: ${what} cannot be part of a step that is captured on ${device}; it would not happen again in later runs. Do it before or after the step, on its inputs or results.`,
  );

export const otherDeviceInStep = (device: string, captured: string): TensorError =>
  captureError(
    `compile: an operation on ${device} cannot be part of a step that is captured on ${captured}. Give its tensors to the step as inputs, or make them before.`,
  );

export const stateOutsideStep = (name: string, shape: Shape): TensorError =>
  captureError(
    `compile: the optimiser has no state '${name}' of the dtype and on the device of a parameter ${show(shape)}, and each run of the captured step would make it anew. Call the optimiser's step once outside, or compile the function again, so that a warm-up makes it.`,
  );

export const asyncStep = (): TensorError =>
  captureError(
    'compile: expected a function that returns when all is started, got one that returns a promise.',
  );

export const otherInput = (i: number, given: string, captured: string): TensorError =>
  captureError(
    `compile: input ${i} is ${given}, but the step was captured with ${captured}. Pad the batch, or compile a step for each shape.`,
  );

export const otherInputCount = (given: number, captured: number): TensorError =>
  captureError(`compile: expected ${captured} inputs, as in the first call, got ${given}.`);
