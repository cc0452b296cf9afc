// The typed surface of the native addon, and where it is found. Nothing but native.ts knows the addon.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { nativeKernelsMissing } from '../errors.ts';
import type { HostArray } from '../kernels.ts';

export interface CudaDevice {
  readonly name: string;
  readonly memoryBytes: number;
  /** For example '9.0'. */
  readonly computeCapability: string;
}

export interface CudaInfo {
  /** Whether the addon was built with CUDA kernels. */
  readonly compiled: boolean;
  readonly count: number;
  readonly devices: readonly CudaDevice[];
  /** Why there are no devices; empty when there are some. */
  readonly reason: string;
}

/** Memory is named by handles, operations by their numbers in native.ts. */
export interface NativeAddon {
  /** Where shapes and strides travel: rank, shape, then the strides of each input. */
  readonly scratch: Float64Array;
  /** Bytes from the start of a buffer to where memory is aligned best. */
  readonly padding: (buffer: ArrayBuffer) => number;
  /** Names the memory of an array, and keeps the array alive until `free`. */
  readonly adopt: (array: HostArray) => number;
  readonly free: (handle: number) => void;
  /** What has been adopted and not freed. */
  readonly memory: () => { handles: number; bytes: number };
  /** Takes the kernels of this level (0 baseline, 1 avx2, 2 avx512) or of the best below; returns their name. */
  readonly useCpu: (cap: number) => string;
  readonly cudaInfo: () => CudaInfo;

  readonly fill: (out: number, value: number) => void;
  readonly copy: (out: number, a: number) => void;
  readonly strided: (out: number, a: number, offset: number) => void;
  readonly unary: (op: number, out: number, a: number) => void;
  readonly binary: (op: number, out: number, a: number, b: number) => void;
  readonly affine: (out: number, a: number, scale: number, shift: number) => void;
  readonly axpy: (out: number, a: number, scale: number) => void;
  readonly reduce: (op: number, out: number, a: number, outer: number, size: number, inner: number) => void;
  readonly argmax: (out: number, a: number, outer: number, size: number, inner: number) => void;
  /** flags: 1 transA, 2 transB, 4 accumulate. */
  readonly matmul: (
    out: number,
    a: number,
    b: number,
    m: number,
    n: number,
    k: number,
    flags: number,
  ) => void;
  readonly logSoftmax: (out: number, a: number, rows: number, cols: number) => void;
  readonly logSoftmaxGrad: (gradIn: number, gradOut: number, out: number, rows: number, cols: number) => void;
  readonly nll: (losses: number, logProbs: number, labels: number, rows: number, cols: number) => void;
  readonly nllGrad: (gradIn: number, gradLosses: number, labels: number, rows: number, cols: number) => void;
  /** velocity: 0 for none. flags: 1 nesterov, 2 first. */
  readonly sgd: (
    param: number,
    grad: number,
    velocity: number,
    lr: number,
    momentum: number,
    dampening: number,
    weightDecay: number,
    flags: number,
  ) => void;
}

/** Loads tensor.node: from the folder RINGWISE_NATIVE_PATH, or from this platform's package. */
export function loadAddon(): NativeAddon {
  const platform = `${process.platform}-${process.arch}`;
  if (process.platform === 'win32')
    throw nativeKernelsMissing(platform, ['nothing (Windows is not supported yet)']);
  const require = createRequire(import.meta.url);
  const folder = process.env.RINGWISE_NATIVE_PATH;
  const tried: string[] = [];
  let cause: unknown;
  for (const path of [folder && resolve(folder, 'tensor.node'), `@ringwise/native-${platform}/tensor.node`]) {
    if (!path) continue;
    try {
      return require(path) as NativeAddon;
    } catch (error) {
      cause ??= error;
      tried.push(`${path} (${(error as Error).message.split('\n')[0]})`);
    }
  }
  throw nativeKernelsMissing(platform, tried, cause);
}
