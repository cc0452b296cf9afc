// The typed surface of the native addon, and where it is found. Besides this folder, only doctor.ts uses the addon.
import type { HostArray } from '../../core/dtype.ts';
import { NativeKernelsMissing } from '../../errors.ts';
import type { DenseName, WalkName } from '../kernels.ts';
import { adviceOn } from './advice.ts';
import { findAddon, platformOf, thisHost } from './find-addon.ts';

/** A CUDA device as cudaInfo() describes it. */
export interface CudaDevice {
  /** Name that the vendor gave the device. */
  readonly name: string;
  /** Size of its memory. */
  readonly memoryBytes: number;
  /** For example '9.0'. */
  readonly computeCapability: string;
  /** Number of its multiprocessors. */
  readonly multiprocessors: number;
}

/** An optional library of the vendor, such as cuDNN; where it is missing, this package's kernels compute instead. */
export interface CudaLibrary {
  /** Name of the library, such as 'cublasLt'. */
  readonly name: string;
  /** Path of the library; empty if it was not found. */
  readonly path: string;
  /** For example '13.1'; empty when it cannot be used. */
  readonly version: string;
  /** Why it cannot be used, with every path that was tried; empty when it can. */
  readonly reason: string;
}

/** The state of CUDA on this host, from cudaInfo(). */
export interface CudaInfo {
  /** Whether the addon was built with CUDA kernels. */
  readonly compiled: boolean;
  /**
   * Version of the CUDA compiler that made the kernels, for example '13.0'; null without kernels. A driver that only
   * knows an older CUDA cannot load them.
   */
  readonly kernelsVersion: string | null;
  /** Path of the driver (libcuda); null if it was not found. */
  readonly driver: string | null;
  /** The newest CUDA that the driver knows, for example '13.0'. */
  readonly driverVersion: string | null;
  /** The devices that the process sees, by their numbers. */
  readonly devices: readonly CudaDevice[];
  /** Why there are no devices, with every path that was tried for the driver; empty when there are some. */
  readonly reason: string;
  /** The vendor's libraries that are used beside the driver. Reading this member loads them. */
  readonly libraries: readonly CudaLibrary[];
}

/** The memory of a device: live, peak, cached, pieces and segments are those of its caching allocator. */
export interface CudaMemoryUse {
  /** Bytes handed out. */
  readonly live: number;
  /** The maximum number of bytes allocated at once. */
  readonly peak: number;
  /** Bytes that are kept for reuse. */
  readonly cached: number;
  readonly pieces: number;
  readonly segments: number;
  /** Bytes allocated from the driver, including those of captured steps. */
  readonly reserved: number;
  /** Bytes of pinned host memory. */
  readonly pinned: number;
}

/** Kernels over operands that `scratch` names; they have no arguments. */
type DeclaredKernels = Readonly<Record<WalkName | DenseName, () => void>>;

/**
 * Memory is identified by handles, dtypes and operations by numbers. Kernels except those of lists read all arguments
 * from `scratch`.
 */
export interface NativeAddon extends DeclaredKernels {
  /** For each operand a handle and an offset (handle 0: a number, and its value); then rank, shape and the strides of
   *  each operand, if the kernel walks over them; last the numbers of the call. layout.ts has the positions. */
  readonly scratch: Float64Array;
  /** Returns the number of bytes from the start of a buffer to its first address that is a multiple of 64. */
  readonly padding: (buffer: ArrayBuffer) => number;
  /** Names the memory of an array, and keeps the array alive until `free`. */
  readonly adopt: (array: HostArray, dtype: number) => number;
  /** Returns a buffer over host memory of another library, for `borrow`. */
  readonly bufferAt: (address: bigint, bytes: number) => ArrayBuffer;
  /**
   * Does the same as adopt, with an array over bufferAt; keeps `owner` until `free`, which detaches the buffer and
   * calls `release`.
   */
  readonly borrow: (array: HostArray, dtype: number, owner: object, release: (() => void) | null) => number;
  /** Returns the address of the memory on its device. */
  readonly address: (handle: number) => bigint;
  readonly free: (handle: number) => void;
  /** Returns the number and the size of all memory, of the host and of devices, that has a handle. */
  readonly memory: () => { handles: number; bytes: number };
  /** Adds to the bytes outside of the heap that the garbage collector counts. */
  readonly adjustExternalMemory: (bytes: number) => void;
  /** Takes the CPU kernels of this level (0 baseline, 1 avx2, 2 avx512), or of the best that the CPU has below it.
   *  Returns their name. */
  readonly useCpu: (cap: number) => string;
  /** Returns the number of threads that share a kernel; the whole process has one such setting. */
  readonly numThreads: () => number;
  readonly setNumThreads: (count: number) => void;
  /** Returns which devices there are, or why there are none. Loads the driver at the first call. */
  readonly cudaInfo: () => Omit<CudaInfo, 'libraries'>;
  readonly cudaLibraries: () => CudaLibrary[];
  /** Returns why cublasLt cannot be used, or '' if it can. Loads it at the first call. */
  readonly cudaWithoutCublas: () => string;
  /** Returns why cuDNN cannot be used, or '' if it can. Loads it at the first call. */
  readonly cudaWithoutCudnn: () => string;
  /** Sets whether float32 products may be computed in TF32, for the whole process. */
  readonly cudaAllowTf32: (isAllowed: boolean) => void;
  /** Allocates memory of a device. `free` frees its handle like all others, and never blocks. */
  readonly cudaAlloc: (device: number, dtype: number, count: number) => number;
  /** Does the same, in memory that other processes and devices can map, if the device has such memory and `count` is
   *  large enough to benefit. */
  readonly cudaAllocShareable: (device: number, dtype: number, count: number) => number;
  /**
   * Wraps memory of another library. `stream` is the owner's: work here runs after the work already on it, and work
   * added to it after `release` runs after the work here.
   */
  readonly cudaAdopt: (
    device: number,
    dtype: number,
    count: number,
    address: bigint,
    owner: object,
    stream: bigint | null,
    release: (() => void) | null,
  ) => number;
  /**
   * Copies to the device, and returns when the array may be changed. Waits for earlier uploads if more than 4 MiB are
   * in flight, with `isDetached` only if more than 256 MiB are.
   */
  readonly cudaUpload: (handle: number, offset: number, array: HostArray, isDetached: boolean) => void;
  /** Allocates pinned memory. Returns a buffer over it, and the token that names it in copies. Each keeps it alive. */
  readonly cudaPin: (bytes: number) => [ArrayBuffer, object];
  readonly cudaPinnedIsIdle: (pinned: object) => boolean;
  // `offset` counts elements of the device memory, `byteOffset` bytes of the pinned memory.
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
  /** Copies to the host. Waits for the copy and all earlier work of the current stream. */
  readonly cudaDownload: (handle: number, offset: number, array: HostArray) => void;
  readonly cudaDownloadAsync: (handle: number, offset: number, array: HostArray) => Promise<HostArray>;
  readonly cudaSynchronize: (device: number) => void;
  readonly cudaMemory: (device: number) => CudaMemoryUse;
  readonly cudaEmptyCache: (device: number) => void;

  // Streams are numbers, counted for each device, 0 the main one; events and steps are objects. Their meaning:
  // DeviceControl.
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

  // `table`: rows of count, steps, then handle and offset of a parameter, its gradient and three states. The rule's
  // numbers and its variant are those of OptimizerRule in native/tensor/optimizer.h.
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
  /** Operand 0 of `scratch` receives the norm. */
  readonly totalNorm: (table: Float64Array, rows: number) => void;
  /** Operand 0 of `scratch` is the factor; operand 1, which may be absent, receives 1 if an element is not finite. */
  readonly scale: (table: Float64Array, rows: number) => void;
}

/** Platforms for which releases have the addon. */
const released = [
  'darwin-arm64',
  'darwin-x64',
  'linux-arm64',
  'linux-x64',
  'linuxmusl-arm64',
  'linuxmusl-x64',
  'win32-x64',
];

export const loadAddon = (): NativeAddon => loadedAddon().addon;

/**
 * Loads tensor.node: from the folder RINGWISE_NATIVE_PATH, else from this platform's package. Returns it with the path
 * where it was found. Throws ERR_TENSOR_KERNELS with every path that was tried.
 */
export function loadedAddon(): { readonly addon: NativeAddon; readonly path: string } {
  const family = '@ringwise/tensor';
  const found = findAddon<NativeAddon>('tensor', family);
  if (found.addon !== undefined) return found;
  const { tried, cause } = found;
  const host = thisHost();
  throw new NativeKernelsMissing(platformOf(host), tried, adviceOn(family, released, host, tried), cause);
}
