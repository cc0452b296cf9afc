// The typed surface of the native addon, and where it is found. Nothing but native.ts knows the addon.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import type { HostArray } from '../../core/dtype.ts';
import { nativeKernelsMissing } from '../../errors.ts';
import type { DenseName, WalkName } from '../kernels.ts';

export interface CudaDevice {
  readonly name: string;
  readonly memoryBytes: number;
  /** For example '9.0'. */
  readonly computeCapability: string;
  readonly multiprocessors: number;
}

/** A library of the vendor that computes where it is found. */
export interface CudaLibrary {
  readonly name: string;
  /** Path of the library; empty if it was not found. */
  readonly path: string;
  /** For example '13.1'; empty when it cannot be used. */
  readonly version: string;
  /** Why it cannot be used, with every path that was tried; empty when it can. */
  readonly reason: string;
}

export interface CudaInfo {
  /** Whether the addon was built with CUDA kernels. */
  readonly compiled: boolean;
  /**
   * The CUDA whose compiler made the kernels, for example '13.0'; null without kernels. A driver that only knows an
   * older CUDA cannot load them.
   */
  readonly kernelsVersion: string | null;
  /** Path of the driver (libcuda); null if it was not found. */
  readonly driver: string | null;
  /** The newest CUDA that the driver knows, for example '13.0'. */
  readonly driverVersion: string | null;
  readonly devices: readonly CudaDevice[];
  /** Why there are no devices, with every path that was tried for the driver; empty when there are some. */
  readonly reason: string;
  /** The vendor's libraries that are used beside the driver. Reading this member loads them. */
  readonly libraries: readonly CudaLibrary[];
}

/** The memory that the caching allocator of a device holds. */
export interface CudaMemoryUse {
  /** Bytes handed out. */
  readonly live: number;
  /** The most bytes that were handed out at once. */
  readonly peak: number;
  /** Bytes that are kept for reuse. */
  readonly cached: number;
  readonly pieces: number;
  readonly segments: number;
  /** Bytes that are held from the driver, those of captured steps included. */
  readonly reserved: number;
  /** Bytes of pinned host memory. */
  readonly pinned: number;
}

/** Kernels over operands that `scratch` names; they have no arguments. */
type DeclaredKernels = Readonly<Record<WalkName | DenseName, () => void>>;

/** Memory is named by handles, dtypes and operations by numbers. Kernels take their operands from `scratch`. */
export interface NativeAddon extends DeclaredKernels {
  /** For up to four operands a handle and an offset (handle 0: a number, and its value); then rank, shape and the
   *  strides of each operand, where a kernel walks over them; last the numbers of calls without arguments. */
  readonly scratch: Float64Array;
  /** Bytes from the start of a buffer to where memory is aligned best. */
  readonly padding: (buffer: ArrayBuffer) => number;
  /** Names the memory of an array, and keeps the array alive until `free`. */
  readonly adopt: (array: HostArray, dtype: number) => number;
  /** Host memory of another library, for `borrow`. */
  readonly bufferAt: (address: bigint, bytes: number) => ArrayBuffer;
  /** Does what adopt does; keeps `owner` until `free`, which empties the array and calls `release`. */
  readonly borrow: (array: HostArray, dtype: number, owner: object, release: (() => void) | null) => number;
  /** Returns the address of the memory on its device. */
  readonly address: (handle: number) => bigint;
  readonly free: (handle: number) => void;
  /** Returns the number and the size of the arrays that are adopted and not yet freed. */
  readonly memory: () => { handles: number; bytes: number };
  /** Adds to the bytes outside of the heap that the garbage collector counts. */
  readonly adjustExternalMemory: (bytes: number) => void;
  /** Takes the kernels of this level (0 baseline, 1 avx2, 2 avx512) or of the best below; returns their name. */
  readonly useCpu: (cap: number) => string;
  /** Threads that share a kernel; the setting is one for the whole process. */
  readonly numThreads: () => number;
  readonly setNumThreads: (count: number) => void;
  /** Loads the driver at the first call. */
  readonly cudaInfo: () => Omit<CudaInfo, 'libraries'>;
  readonly cudaLibraries: () => CudaLibrary[];
  /** Sets whether float32 products may be computed in TF32, for the whole process. */
  readonly cudaAllowTf32: (isAllowed: boolean) => void;
  /** Memory of a device; its handle is freed like all others, and never blocks. */
  readonly cudaAlloc: (device: number, dtype: number, count: number) => number;
  /** The same, in memory that other processes and devices can map where the device has such and it is large enough. */
  readonly cudaAllocShareable: (device: number, dtype: number, count: number) => number;
  /** Memory of another library. With a stream, that of its owner, the order of its work is kept on both sides. */
  readonly cudaAdopt: (
    device: number,
    dtype: number,
    count: number,
    address: bigint,
    owner: object,
    stream: bigint | null,
    release: (() => void) | null,
  ) => number;
  /** Returns when the array may be changed. `isDetached`: waits for earlier uploads only if 256 MiB are in flight. */
  readonly cudaUpload: (handle: number, offset: number, array: HostArray, isDetached: boolean) => void;
  /** Pinned memory, and the token that copies name it by. Either keeps it. */
  readonly cudaPin: (bytes: number) => [ArrayBuffer, object];
  readonly cudaPinnedIsIdle: (pinned: object) => boolean;
  /** Offset of the device memory in elements, of pinned memory in bytes. */
  readonly cudaStartUpload: (
    handle: number,
    offset: number,
    pinned: object,
    byteOffset: number,
    bytes: number,
  ) => void;
  readonly cudaStartDownload: (
    handle: number,
    offset: number,
    pinned: object,
    byteOffset: number,
    bytes: number,
  ) => void;
  /** Waits for all that was started on the device before, as cudaSynchronize does. */
  readonly cudaDownload: (handle: number, offset: number, array: HostArray) => void;
  readonly cudaDownloadAsync: (handle: number, offset: number, array: HostArray) => Promise<HostArray>;
  readonly cudaSynchronize: (device: number) => void;
  readonly cudaMemory: (device: number) => CudaMemoryUse;
  readonly cudaEmptyCache: (device: number) => void;

  // Streams are numbers of their device, 0 the main one; events and steps are objects.
  readonly cudaMakeStream: (device: number) => number;
  readonly cudaUseStream: (device: number, stream: number) => void;
  readonly cudaStreamSynchronize: (device: number, stream: number) => void;
  readonly cudaStreamDone: (device: number, stream: number) => Promise<void>;
  readonly cudaStreamWait: (device: number, stream: number, event: object) => void;
  readonly cudaStreamAddress: (device: number, stream: number) => bigint;
  readonly cudaMakeEvent: (device: number) => object;
  readonly cudaEventRecord: (event: object, stream: number) => void;
  readonly cudaEventQuery: (event: object) => boolean;
  readonly cudaEventSynchronize: (event: object) => void;
  readonly cudaEventElapsed: (from: object, to: object) => number;
  readonly cudaMakeStep: (device: number) => object;
  readonly cudaStepDispose: (step: object) => void;
  readonly cudaStepEnter: (step: object) => void;
  readonly cudaStepLeave: (step: object) => void;
  readonly cudaStepBegin: (step: object) => void;
  readonly cudaStepEnd: (step: object) => void;
  readonly cudaStepAbort: (step: object) => void;
  readonly cudaStepRewind: (step: object) => void;
  readonly cudaStepPut: (step: object, numbers: Float64Array) => number;
  readonly cudaStepPutOptimizer: (
    step: object,
    steps: Float64Array,
    lr: number,
    weightDecay: number,
    momentum: number,
    smoothing: number,
    epsilon: number,
  ) => void;
  readonly cudaStepLaunch: (step: object) => void;
  readonly cudaStepDrop: (step: object) => void;
  readonly cudaStepStream: (step: object) => bigint;

  // `table`: rows of count, steps, then handle and offset of a parameter, its gradient and three states.
  /** flags: 1 the rule's variant, 2 maximize. */
  readonly optimize: (
    table: Float64Array,
    rows: number,
    kind: number,
    lr: number,
    weightDecay: number,
    momentum: number,
    smoothing: number,
    epsilon: number,
    flags: number,
  ) => void;
  readonly totalNorm: (table: Float64Array, rows: number) => void;
  readonly scale: (table: Float64Array, rows: number) => void;
}

export const loadAddon = (): NativeAddon => findAddon().addon;

/** Loads tensor.node: from the folder RINGWISE_NATIVE_PATH, or from this platform's package. `path` is where it was. */
export function findAddon(): { readonly addon: NativeAddon; readonly path: string } {
  const platform = `${process.platform}-${process.arch}`;
  if (process.platform === 'win32')
    throw nativeKernelsMissing(platform, ['nothing (Windows is not supported yet)']);
  const require = createRequire(import.meta.url);
  const folder = process.env.RINGWISE_NATIVE_PATH;
  const tried: string[] = [];
  let cause: unknown;
  for (const path of [folder && resolve(folder, 'tensor.node'), `@ringwise/tensor-${platform}/tensor.node`]) {
    if (!path) continue;
    try {
      return { addon: require(path) as NativeAddon, path: require.resolve(path) };
    } catch (error) {
      cause ??= error;
      tried.push(`${path} (${(error as Error).message.split('\n')[0]})`);
    }
  }
  throw nativeKernelsMissing(platform, tried, cause);
}
