// Errors of the kernels' backends: which one is used, messages of the addon, and allocation failures.
import type { DType } from '../core/dtype.ts';
import { type Shape, show, TensorError, type TensorErrorCode } from './tensor-error.ts';

/** The native kernels are not available, and the reference kernels can be used instead. */
export class NativeKernelsMissing extends TensorError {
  /** Advice for the user, in sentences. */
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
    `RINGWISE_KERNELS: expected 'native' or 'reference', got '${value}'. Unset it to use the native kernels if they can be loaded.`,
  );

export const unknownCpuLevel = (value: string, known: readonly string[]): TensorError =>
  new TensorError(
    'ERR_TENSOR_KERNELS',
    `RINGWISE_CPU: expected ${known.join(', ')}, got '${value}'. Unset it to use the best kernels that this CPU supports.`,
  );

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
  /** The line that made one of them, as a line of a stack; null if it was not recorded. */
  readonly location: string | null;
}

export const outOfDeviceMemory = ({ message, cause }: Error, largest: readonly HeldMemory[]): TensorError => {
  const texts = largest.map(({ dtype, count, tensors, bytes, location }) => {
    const made = location === null ? '' : `, one made ${location}`;
    return `${tensors} of ${count} elements of ${dtype} (${(bytes / 2 ** 20).toFixed(1)} MiB${made})`;
  });
  const list = texts.length === 0 ? '' : ` The largest tensors there: ${texts.join(', ')}.`;
  const isTraced = largest.some(({ location }) => location !== null);
  const advice = list === '' || isTraced ? '' : ' RINGWISE_TENSOR_DEBUG=1 shows where they were made.';
  return new TensorError('ERR_TENSOR_MEMORY', message + list + advice, cause);
};
