// The errors of this package. Those about positional arguments are in checks/argument-errors.ts, those of single
// operations in checks/op-errors.ts. A message says what was asked, what was found, and what to do next.
import { type DType, dtypes } from './core/dtype.ts';

/** The codes of a TensorError. The README lists cause and next step of each. */
export type TensorErrorCode =
  | 'ERR_TENSOR_ANOMALY'
  | 'ERR_TENSOR_ARGUMENT'
  | 'ERR_TENSOR_AUTOGRAD'
  | 'ERR_TENSOR_CAPTURE'
  | 'ERR_TENSOR_DEVICE'
  | 'ERR_TENSOR_DISPOSED'
  | 'ERR_TENSOR_DTYPE'
  | 'ERR_TENSOR_GRAD_CHECK'
  | 'ERR_TENSOR_KERNELS'
  | 'ERR_TENSOR_LABEL'
  | 'ERR_TENSOR_LINALG'
  | 'ERR_TENSOR_MEMORY'
  | 'ERR_TENSOR_NPY'
  | 'ERR_TENSOR_SAFETENSORS'
  | 'ERR_TENSOR_SHAPE'
  | 'ERR_TENSOR_STATE_DICT';

/** The error class of this package; `code` is stable, the text is not. */
export class TensorError extends Error {
  /** Name of the class. */
  override readonly name = 'TensorError';
  /** Stable code, which programs may compare. */
  readonly code: TensorErrorCode;

  constructor(code: TensorErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

type Shape = readonly number[];
const show = (shape: Shape): string => `[${shape.join(', ')}]`;

const argument = (message: string): TensorError => new TensorError('ERR_TENSOR_ARGUMENT', message);
const shapeError = (message: string): TensorError => new TensorError('ERR_TENSOR_SHAPE', message);
const dtypeError = (message: string): TensorError => new TensorError('ERR_TENSOR_DTYPE', message);
const autograd = (message: string): TensorError => new TensorError('ERR_TENSOR_AUTOGRAD', message);

// Kernels.

/** The native kernels are not there, so that the reference kernels can take their place. */
export class NativeKernelsMissing extends TensorError {
  /** What the user can do, in sentences. */
  readonly advice: string;

  /** `tried`: one entry per path, with the reason why it did not load. */
  constructor(platform: string, tried: readonly string[], advice: string, cause?: unknown) {
    super(
      'ERR_TENSOR_KERNELS',
      `native kernels: no addon loaded for ${platform}; tried ${tried.join('; ')}. ` +
        `${advice} RINGWISE_KERNELS=reference chooses the slow TypeScript kernels.`,
      cause,
    );
    this.advice = advice;
  }
}

export const unknownKernels = (value: string): TensorError =>
  new TensorError(
    'ERR_TENSOR_KERNELS',
    `RINGWISE_KERNELS: expected 'native' or 'reference', got '${value}'. Unset it to take native kernels where they load.`,
  );

export const unknownCpuLevel = (value: string, known: readonly string[]): TensorError =>
  new TensorError(
    'ERR_TENSOR_KERNELS',
    `RINGWISE_CPU: expected ${known.join(', ')}, got '${value}'. Unset it to take the best that this CPU has.`,
  );

// Devices.

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

// Errors of the addon, and memory.

/**
 * Turns an error of the addon into one of this package. The addon's errors have a text for users and a code of this
 * package; errors without a code become ERR_TENSOR_KERNELS.
 */
export const fromAddon = (error: unknown): TensorError => {
  const { code, message } = error as { code?: TensorErrorCode; message: string };
  return new TensorError(code ?? 'ERR_TENSOR_KERNELS', message + sharedHost(message), error);
};

/**
 * Returns a sentence if the message says that a device is missing and the host has more ranks than devices, else ''.
 */
function sharedHost(message: string): string {
  const found = /there is no such device; (\d+) were found/.exec(message)?.[1];
  const { LOCAL_WORLD_SIZE: ranks, CUDA_VISIBLE_DEVICES: visible } = process.env;
  if (found === undefined || !(Number(ranks) > Number(found))) return '';
  const from = visible === undefined ? '' : ` (CUDA_VISIBLE_DEVICES=${visible})`;
  return ` This host has ${ranks} ranks for ${found} devices${from}: start one for each (--nproc-per-node gpu), or let ranks share a device, which NCCL refuses and the host backend does not.`;
}

export const disposed = (shape: Shape): TensorError =>
  new TensorError(
    'ERR_TENSOR_DISPOSED',
    `tensor ${show(shape)}: used after it was disposed by dispose(), by the end of a scope, or by a backward that had ` +
      'it as an intermediate result. Read it before, or call keep(tensor).',
  );

// Shapes.

export const badShape = (op: string, shape: Shape): TensorError => {
  const next = typeof shape === 'number' ? ` Put the sizes into an array, such as [${shape as number}].` : '';
  return shapeError(`${op}: expected an array of sizes that are integers ≥ 0, got ${shown(shape)}.${next}`);
};

export const tooManyDims = (op: string, most: number, shape: Shape): TensorError =>
  shapeError(
    `${op}: expected at most ${most} dimensions, got ${shape.length}: ${show(shape)}. Flatten some of them.`,
  );

export const broadcastFailed = (op: string, a: Shape, b: Shape): TensorError =>
  shapeError(
    `${op}: cannot broadcast ${show(a)} with ${show(b)}; aligned at the end, sizes must be equal or 1. Use reshape or unsqueeze.`,
  );

export const cannotStretchInto = (op: string, from: Shape, into: Shape): TensorError =>
  shapeError(
    `${op}: cannot stretch ${show(from)} to ${show(into)}, the shape of the tensor that is changed.`,
  );

export const writtenTwice = (op: string, shape: Shape): TensorError =>
  shapeError(
    `${op}: elements of the tensor ${show(shape)} share memory, as those that expand() made, or windows of unfold(); they cannot be written one by one. ` +
      'Change a clone() of it.',
  );

export const floatIntoInteger = (op: string, from: DType, to: DType): TensorError =>
  dtypeError(
    `${op}: the result is ${from}, and the tensor is ${to}. Use the operation without underscore, or to().`,
  );

export const outOfHostMemory = (dtype: DType, count: number, cause: unknown): TensorError =>
  new TensorError(
    'ERR_TENSOR_MEMORY',
    `tensor: no memory for ${count} elements of ${dtype} on the host. Dispose tensors, or make a smaller one.`,
    cause,
  );

/** Memory of tensors that have the same dtype and number of elements. */
export interface HeldMemory {
  readonly dtype: DType;
  readonly count: number;
  readonly tensors: number;
  readonly bytes: number;
  /** Where one of them was made, as a line of a stack; null if that was not recorded. */
  readonly place: string | null;
}

export const outOfDeviceMemory = ({ message, cause }: Error, largest: readonly HeldMemory[]): TensorError => {
  const texts = largest.map(({ dtype, count, tensors, bytes, place }) => {
    const made = place === null ? '' : `, one made ${place}`;
    return `${tensors} of ${count} elements of ${dtype} (${(bytes / 2 ** 20).toFixed(1)} MiB${made})`;
  });
  const list = texts.length === 0 ? '' : ` The largest tensors there: ${texts.join(', ')}.`;
  const isTraced = largest.some(({ place }) => place !== null);
  const advice = list === '' || isTraced ? '' : ' RINGWISE_TENSOR_DEBUG=1 shows where they were made.';
  return new TensorError('ERR_TENSOR_MEMORY', message + list + advice, cause);
};

export const notATensor = (op: string, got: unknown): TensorError =>
  argument(
    `${op}: expected a tensor or a number, got ${got === null ? 'null' : Array.isArray(got) ? 'an array' : typeof got}.`,
  );

export const badDim = (op: string, dim: number, rank: number): TensorError =>
  rank === 0
    ? shapeError(`${op}: dimension ${shown(dim)} of a tensor without dimensions. Use unsqueeze(0) first.`)
    : shapeError(`${op}: expected a dimension from ${-rank} to ${rank - 1}, got ${shown(dim)}.`);

export const repeatedDim = (op: string, dim: number): TensorError =>
  shapeError(`${op}: expected each dimension at most once, got dimension ${dim} a second time.`);

export const cannotReshape = (from: Shape, to: Shape): TensorError =>
  shapeError(`reshape: cannot make ${show(to)} of ${show(from)}; the number of elements must stay the same.`);

/** `rank`: a number of dimensions, or words for several, such as '2 or 3'. */
export const needsRank = (op: string, rank: number | string, shape: Shape): TensorError =>
  shapeError(`${op}: expected ${rank} dimensions, got shape ${show(shape)}.`);

export const badExpand = (from: Shape, to: Shape): TensorError =>
  shapeError(
    `expand: cannot stretch ${show(from)} to ${show(to)}; aligned at the end, sizes must be equal, or 1 in the tensor. −1 keeps a size.`,
  );

export const cannotView = (from: Shape, to: Shape): TensorError =>
  shapeError(
    `view: no strides give ${show(to)} over the memory of ${show(from)}, which is not dense. Use reshape, which copies, or contiguous() first.`,
  );

export const badPermutation = (dims: Shape, rank: number): TensorError =>
  shapeError(`permute: expected each dimension from 0 to ${rank - 1} once, got ${show(dims)}.`);

export const badRange = (op: string, dim: number, start: number, length: number, size: number): TensorError =>
  shapeError(
    `${op}: ${length} elements from ${start} on do not lie inside dimension ${dim}, which has size ${size}.`,
  );

export const badIndex = (op: string, index: number, dim: number, size: number): TensorError =>
  shapeError(`${op}: index ${index} is out of range for dimension ${dim} of size ${size}.`);

export const tooManyIndices = (op: string, count: number, shape: Shape): TensorError =>
  shapeError(`${op}: ${count} indices for shape ${show(shape)}.`);

export const maskShape = (op: string, mask: Shape, shape: Shape): TensorError =>
  shapeError(
    `${op}: a mask of shape ${show(mask)} does not fit the dimensions ${show(shape)} that it indexes.`,
  );

export const badSizes = (op: string, sizes: Shape, size: number): TensorError =>
  shapeError(`${op}: expected sizes ≥ 0 that add up to ${size}, got ${shown(sizes)}.`);

export const joinShapes = (op: string, first: Shape, other: Shape): TensorError =>
  shapeError(
    `${op}: expected equal sizes in all other dimensions, got ${show(first)} beside ${show(other)}.`,
  );

export const lookupShapes = (op: string, shape: Shape, index: Shape): TensorError =>
  shapeError(`${op}: an index of shape ${show(index)} does not fit into shape ${show(shape)}.`);

export const differentShapes = (op: string, a: Shape, b: Shape): TensorError =>
  shapeError(`${op}: expected equal shapes, got ${show(a)} and ${show(b)}.`);

export const emptyReduction = (op: string, shape: Shape): TensorError =>
  shapeError(`${op}: nothing to choose from, as a dimension of ${show(shape)} that is reduced has size 0.`);

export const badMatmul = (a: Shape, b: Shape): TensorError =>
  shapeError(
    `matmul: cannot multiply ${show(a)} by ${show(b)}; expected [..., m, k] and [..., k, n], where either may be a vector [k].`,
  );

export const badLinear = (x: Shape, w: Shape, b: Shape | null): TensorError =>
  shapeError(
    `linear: expected x [..., in], w [out, in] and b [out], got x ${show(x)}, w ${show(w)}, b ${b ? show(b) : 'null'}.`,
  );

export const badConv = (x: Shape, w: Shape, b: Shape | null, groups: number): TensorError =>
  shapeError(
    `conv2d: expected x [batch, in, height, width], w [out, in / ${groups}, kernel height, kernel width] and b [out], where in and out are multiples of groups ${groups}; got x ${show(x)}, w ${show(w)}, b ${b ? show(b) : 'null'}. x may lack the batch.`,
  );

export const windowTooLarge = (op: string, kernel: Shape, dilation: Shape, plane: Shape): TensorError =>
  shapeError(
    `${op}: a window of ${show(kernel)} with dilation ${show(dilation)} does not fit into a plane of ${show(plane)} and its padding. Pad more, or take a smaller window.`,
  );

export const badPlanes = (op: string, shape: Shape): TensorError =>
  shapeError(
    `${op}: expected [batch, channels, height, width] or [channels, height, width] with planes that are not empty, got ${show(shape)}.`,
  );

export const badChannels = (op: string, what: string, shape: Shape, channels: number): TensorError =>
  shapeError(`${op}: expected ${what} of shape [${channels}], one for each channel, got ${show(shape)}.`);

export const oneValuePerChannel = (shape: Shape): TensorError =>
  shapeError(
    `batchNorm: expected more than one value per channel to train on, got shape ${show(shape)}. Use eval(), or a larger batch.`,
  );

export const noRunningStatistics = (): TensorError =>
  argument(
    'batchNorm: no running statistics to normalise by. Pass { training: true }, which takes those of the batch.',
  );

export const wrongCount = (op: string, shape: Shape, count: number): TensorError =>
  shapeError(`${op}: expected as many elements as shape ${show(shape)} has, got ${count}.`);

export const raggedData = (first: Shape, other: Shape): TensorError =>
  shapeError(`tensor: nested arrays differ in shape: ${show(first)} beside ${show(other)}.`);

export const notOneElement = (what: string, shape: Shape): TensorError =>
  shapeError(`${what}: expected one element, got shape ${show(shape)}. Use toArray() or dataSync().`);

export const badNormShape = (op: string, x: Shape, shape: Shape): TensorError =>
  shapeError(
    `${op}: expected an input whose last dimensions are the normalised shape ${show(shape)}, at least one, got ${show(x)}.`,
  );

export const badAttention = (op: string, q: Shape, k: Shape, v: Shape): TensorError =>
  shapeError(
    `${op}: expected q [..., queries, width], k [..., keys, width] and v [..., keys, any] with a batch and heads in front that are equal, or 1, got q ${show(q)}, k ${show(k)}, v ${show(v)}. Set enableGqa where several heads of q share one of k and v.`,
  );

export const badAttentionMaskShape = (op: string, mask: Shape, full: Shape): TensorError =>
  shapeError(
    `${op}: cannot stretch a mask of shape ${show(mask)} to ${show(full)}, which is [..., queries, keys]; aligned at the end, sizes must be equal, or 1 in the mask.`,
  );

export const badPackedAttention = (shape: Shape, heads: number): TensorError =>
  shapeError(
    `selfAttention: expected qkv [..., time, 3 · channels] with channels that ${heads} heads share evenly, got ${show(shape)}.`,
  );

// Dtypes.

export const needsFloat = (op: string, dtype: DType): TensorError =>
  dtypeError(`${op}: expected a floating dtype, got ${dtype}. Use .to('float32').`);

export const onlyFloatGrad = (dtype: DType): TensorError =>
  dtypeError(`gradient: expected a floating dtype, got ${dtype}. Only floating tensors have gradients.`);

export const gradDtype = (gradient: DType, tensor: DType): TensorError =>
  dtypeError(`backward: expected a gradient of ${tensor}, got ${gradient}. Use .to('${tensor}').`);

/** Other names of dtypes: those of PyTorch, C and NumPy. */
const dtypeNames: Readonly<Record<string, DType>> = {
  ...{ float: 'float32', single: 'float32', f32: 'float32', double: 'float64', f64: 'float64' },
  ...{ half: 'float16', f16: 'float16', fp16: 'float16', bf16: 'bfloat16' },
  ...{ int: 'int32', i32: 'int32', long: 'int64', i64: 'int64', bigint: 'int64', byte: 'uint8', u8: 'uint8' },
  boolean: 'bool',
};

/** Returns a sentence that names our dtype for another library's name; empty for an unknown name. */
function meantDtype(name: unknown): string {
  const word = String(name)
    .replace(/^(torch|np|numpy)\./, '')
    .toLowerCase();
  const dtype = Object.hasOwn(dtypeNames, word) ? dtypeNames[word] : dtypes.find((known) => known === word);
  return dtype === undefined ? '' : ` Use '${dtype}'.`;
}

export const unknownDtype = (op: string, dtype: unknown): TensorError =>
  dtypeError(`${op}: expected dtype ${dtypes.join(', ')}, got ${shown(dtype)}.${meantDtype(dtype)}`);

export const mixedDtypes = (op: string, a: DType, b: DType): TensorError =>
  dtypeError(`${op}: expected one dtype, got ${a} and ${b}. Use .to().`);

export const needsMask = (op: string, dtype: DType): TensorError =>
  dtypeError(`${op}: expected a mask of bool, got ${dtype}. Compare, or use .to('bool').`);

export const badAttentionMask = (op: string, mask: DType, dtype: DType): TensorError =>
  dtypeError(
    `${op}: expected a mask of bool, float32 or ${dtype}, got ${mask}. Compare, or use .to('${dtype}').`,
  );

export const needsIndex = (op: string, dtype: DType): TensorError =>
  dtypeError(`${op}: expected indices of int32 or int64, got ${dtype}. Use .to('int64').`);

// Arguments.

export const badHostArray = (array: unknown, dtype: DType | undefined): TensorError =>
  argument(
    `fromHost: ${ArrayBuffer.isView(array) ? array.constructor.name : typeof array} does not hold ${
      dtype ?? 'elements of a dtype'
    }. Use tensor(), which copies and converts.`,
  );

export const notDense = (shape: Shape): TensorError =>
  argument(
    `buffer: the tensor ${show(shape)} does not lie dense in memory. Use contiguous(), which copies, and copy the result back.`,
  );

export const indexOutOfRange = (op: string, index: number | bigint, at: number, size: number): TensorError =>
  argument(`${op}: index ${index} at position ${at} is out of range; expected 0 to ${size - 1}.`);

export const positionOutOfRange = (op: string, index: number, at: number, size: number): TensorError =>
  argument(
    `${op}: index ${index} at position ${at} is out of range; expected ${size === 0 ? 'none, as there is no element' : `${-size} to ${size - 1}, where negative ones count from the end`}.`,
  );

export const unknownData = (data: unknown): TensorError =>
  argument(
    `tensor: expected a number, a boolean, nested arrays of these or a typed array, got ${typeof data}.`,
  );

export const badArange = (start: number, end: number, step: number): TensorError =>
  argument(
    `arange: expected finite numbers and a step that leads from start to end, got ${[start, end, step].map(shown).join(', ')}.`,
  );

export const badEinsum = (equation: string, expected: string): TensorError =>
  shapeError(`einsum: expected ${expected}, got '${equation}'.`);

export const badSeed = (seed: number): TensorError =>
  argument(`manualSeed: expected an integer from 0 to 2^53 − 1, got ${shown(seed)}.`);

export const badState = (offset: number): TensorError =>
  argument(`setState: expected an offset that is an integer ≥ 0, got ${offset}.`);

export const badWeights = (needed: number, drawable: number): TensorError =>
  argument(
    `multinomial: expected finite weights ≥ 0 of which at least ${needed} are above 0 in each row, got a row with ${drawable}.`,
  );

export const unsafeInteger = (method: string, value: bigint): TensorError =>
  argument(`${method}: ${value} does not fit into a number without loss. Read it from dataSync().`);

// Losses.

export const badLabels = (op: string, scores: Shape, labels: Shape): TensorError =>
  shapeError(
    `${op}: expected scores [rows, classes] and labels [rows], or scores [classes] and one label, got ${show(scores)} and ${show(labels)}.`,
  );

export const badLabelDtype = (op: string, dtype: DType): TensorError =>
  dtypeError(`${op}: expected labels of int32, int64 or uint8, got ${dtype}. Use labels.to('int64').`);

export const ignoredProbabilities = (op: string, ignoreIndex: number): TensorError =>
  argument(
    `${op}: expected no ignoreIndex beside probabilities of classes, got ${ignoreIndex}. Use labels of int64.`,
  );

export const labelOutOfRange = (
  op: string,
  label: number | bigint,
  row: number,
  classes: number,
): TensorError =>
  new TensorError(
    'ERR_TENSOR_LABEL',
    `${op}: label ${label} in row ${row} is out of range; expected 0 to ${classes - 1} for ${classes} classes.`,
  );

export const lossShapes = (op: string, prediction: Shape, target: Shape): TensorError =>
  shapeError(`${op}: expected equal shapes, got ${show(prediction)} and ${show(target)}. Use reshape.`);

// Autograd.

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
  reason:
    'the tensor requires a gradient, and operations are recorded: backward would know nothing of the change',
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

export const gradientCount = (name: string, expected: number, got: number): TensorError =>
  autograd(`${name}: expected a gradient, or null, for each of ${expected} inputs, got ${got}.`);

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
    'checkpoint: the function gave another shape, or no gradient, when it was run again. It must depend on its inputs, on parameters and on the default generator only.',
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
  anomaly(`what the gradient of '${op}' gave`, value, shape, site);

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

// Modules and optimisers.

export const badStateDict = (problems: readonly string[]): TensorError =>
  new TensorError('ERR_TENSOR_STATE_DICT', `loadStateDict: ${problems.join('; ')}. Nothing was changed.`);

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

export const nonfiniteNorm = (norm: number): TensorError =>
  argument(
    `clipGradNorm: the norm of the gradients is ${norm}. Lower the learning rate, or use detectAnomaly.`,
  );

/** `got`: what was given, in words or as shown() writes it. */
export const badOption = (what: string, expected: string, got: string): TensorError =>
  argument(`${what}: expected ${expected}, got ${got}.`);

/** `fault` is what unknownOption() returns, `next` a sentence of advice. */
export const unknownOptions = (op: string, fault: string, next?: string): TensorError =>
  argument(`${op}: ${fault}.${next === undefined ? '' : ` ${next}`}`);

const mostShown = 8;

/** Describes a value that a user gave, as part of a sentence. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 60)}'`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return 'a function';
  if (Array.isArray(value)) {
    const parts = value.slice(0, mostShown).map(shown);
    return `[${[...parts, ...(value.length > mostShown ? ['…'] : [])].join(', ')}]`;
  }
  if (typeof value !== 'object' || value === null) return String(value);
  const name = (value.constructor as { readonly name?: string } | undefined)?.name;
  if ('dtype' in value && 'shape' in value) return 'a tensor';
  return name === undefined || name === 'Object' ? 'an object' : `an object ${name}`;
}

// Files.

export const badNpy = (path: string, problem: string, cause?: unknown): TensorError =>
  new TensorError('ERR_TENSOR_NPY', `npy: ${path}: ${problem}.`, cause);

export const badSafetensors = (path: string, problem: string, cause?: unknown): TensorError =>
  new TensorError('ERR_TENSOR_SAFETENSORS', `safetensors: ${path}: ${problem}.`, cause);
