// The device control of the native kernels: the addon's functions, with this package's errors.
import { markAsUntransferable } from 'node:worker_threads';
import { type DType, dtypeInfo, type HostArray } from '../../core/dtype.ts';
import { refuseWhileCapturing } from '../../device/capture.ts';
import { cudaIndex, type Device } from '../../device/device.ts';
import type { DeviceControl } from '../../device/device-control.ts';
import { fromAddon, nothingPins } from '../../errors.ts';
import type { Loan } from '../kernels.ts';
import type { Memory } from '../operands.ts';
import type { CudaInfo, NativeAddon } from './addon.ts';

/** Calls a function of the addon and throws its errors as errors of this package. */
export function onDevice<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw fromAddon(error);
  }
}

/** Memory of a CUDA device. */
export class CudaMemory implements Memory {
  readonly dtype: DType;
  readonly count: number;
  readonly handle: number;
  readonly device: Device;
  readonly #addon: NativeAddon;

  constructor(addon: NativeAddon, dtype: DType, count: number, device: Device, handle: number) {
    this.dtype = dtype;
    this.count = count;
    this.handle = handle;
    this.device = device;
    this.#addon = addon;
  }

  get host(): HostArray {
    refuseWhileCapturing('reading elements');
    const array = new dtypeInfo[this.dtype].array(this.count);
    onDevice(() => this.#addon.cudaDownload(this.handle, 0, array));
    return array;
  }
}

export function allocCuda(addon: NativeAddon, dtype: DType, count: number, device: Device): Memory {
  const handle = onDevice(() => addon.cudaAlloc(cudaIndex(device), dtypeInfo[dtype].code, count));
  return new CudaMemory(addon, dtype, count, device, handle);
}

/** Wraps device memory that another library lends. */
export function borrowCuda(addon: NativeAddon, loan: Loan): Memory {
  const { dtype, count, device, address, owner, stream, release } = loan;
  const code = dtypeInfo[dtype].code;
  const handle = onDevice(() =>
    addon.cudaAdopt(cudaIndex(device), code, count, address, owner, stream, release),
  );
  return new CudaMemory(addon, dtype, count, device, handle);
}

/** Returns the devices that the addon finds. Reading the member `libraries` loads the vendor's libraries. */
export const cudaInfoOf = (addon: NativeAddon): CudaInfo => ({
  ...addon.cudaInfo(),
  get libraries() {
    return addon.cudaLibraries();
  },
});

/** Wraps a function of the addon so that it throws errors of this package. */
const on =
  <Arguments extends unknown[], Result>(call: (...given: Arguments) => Result) =>
  (...given: Arguments): Result =>
    onDevice(() => call(...given));

/** Allocates pinned memory. An error other than a lack of memory means that no CUDA device can pin any. */
function newPinned(addon: NativeAddon, bytes: number): [ArrayBuffer, object] {
  try {
    return addon.cudaPin(bytes);
  } catch (error) {
    const { code } = error as { readonly code?: string };
    throw code === 'ERR_TENSOR_MEMORY' ? fromAddon(error) : nothingPins(error);
  }
}

export function cudaControl(addon: NativeAddon): DeviceControl {
  /** The token of each pinned buffer. */
  const pinned = new WeakMap<ArrayBufferLike, object>();
  return {
    makeStream: on(addon.cudaMakeStream),
    useStream: on(addon.cudaUseStream),
    synchronizeStream: on(addon.cudaStreamSynchronize),
    streamDone: (device, stream) =>
      onDevice(() => addon.cudaStreamDone(device, stream)).catch((error: unknown) => {
        throw fromAddon(error);
      }),
    waitForEvent: on(addon.cudaStreamWait),
    streamAddress: on(addon.cudaStreamAddress),
    makeEvent: on(addon.cudaMakeEvent),
    recordEvent: on(addon.cudaEventRecord),
    isReached: on(addon.cudaEventQuery),
    synchronizeEvent: on(addon.cudaEventSynchronize),
    elapsedMs: on(addon.cudaEventElapsed),
    makeStep: on(addon.cudaMakeStep),
    disposeStep: on(addon.cudaStepDispose),
    enterStep: on(addon.cudaStepEnter),
    leaveStep: on(addon.cudaStepLeave),
    beginStep: on(addon.cudaStepBegin),
    endStep: on(addon.cudaStepEnd),
    abortStep: on(addon.cudaStepAbort),
    rewindStep: on(addon.cudaStepRewind),
    putNumbers: on(addon.cudaStepPut),
    putOptimizer: (step, { steps, lr, weightDecay, momentum, smoothing, epsilon }) =>
      onDevice(() => addon.cudaStepPutOptimizer(step, steps, lr, weightDecay, momentum, smoothing, epsilon)),
    launchStep: on(addon.cudaStepLaunch),
    dropStep: on(addon.cudaStepDrop),
    stepStream: on(addon.cudaStepStream),
    allocShareable: (dtype, count, device) => {
      const handle = onDevice(() =>
        addon.cudaAllocShareable(cudaIndex(device), dtypeInfo[dtype].code, count),
      );
      return new CudaMemory(addon, dtype, count, device, handle);
    },
    allowTf32: (isAllowed) => addon.cudaAllowTf32(isAllowed),
    memoryUse: (device) => {
      const { reserved, pinned } = onDevice(() => addon.cudaMemory(device));
      return { reservedBytes: reserved, pinnedBytes: pinned };
    },
    totalBytes: (device) => addon.cudaInfo().devices[device]!.memoryBytes,
    countForCollector: (bytes) => addon.adjustExternalMemory(bytes),
    pin: (bytes) => {
      refuseWhileCapturing('new pinned memory');
      const [buffer, token] = newPinned(addon, Math.max(bytes, 1));
      // A transfer would take the memory away from under copies that are under way.
      markAsUntransferable(buffer);
      pinned.set(buffer, token);
      return buffer;
    },
    isPinned: (buffer) => pinned.has(buffer),
    isIdle: (buffer) => {
      const token = pinned.get(buffer);
      return token === undefined || onDevice(() => addon.cudaPinnedIsIdle(token));
    },
    startWrite: ({ handle }, offset, array) => {
      refuseWhileCapturing('a copy from host memory');
      const token = pinned.get(array.buffer);
      const { byteOffset, byteLength } = array;
      onDevice(() =>
        token === undefined
          ? addon.cudaUpload(handle, offset, array as HostArray, true)
          : addon.cudaStartUpload(handle, offset, token, byteOffset, byteLength),
      );
    },
    startRead: ({ handle }, offset, { buffer, byteOffset, byteLength }) => {
      refuseWhileCapturing('a copy to host memory');
      onDevice(() => addon.cudaStartDownload(handle, offset, pinned.get(buffer)!, byteOffset, byteLength));
    },
  };
}
