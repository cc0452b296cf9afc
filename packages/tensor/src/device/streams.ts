// CUDA streams: queues of work on a device that run concurrently. Work runs on the main stream of its device,
// or inside withStream on the given one. Memory is managed across streams: memory that is freed while another
// stream still uses it is reused only after that use has ended. The order of results is not: a stream that
// reads what another one writes must wait for an event.
import { beforeKernels, deviceControl, kernels } from '../backends/index.ts';
import { chosenStreams, withStreams } from '../core/context.ts';
import { useDirectly } from '../core/memory/storage.ts';
import { badOption, onlyOnCuda, shown } from '../errors.ts';
import { refuseWhileCapturing } from './capture.ts';
import { cudaIndex, type Device, type DeviceName, deviceOf } from './device.ts';

/** Numbers of the streams that the kernel set uses now, by device; null: the main ones. */
let inUse: readonly number[] | null = null;

/** Sets the streams that withStream() has chosen for the running code in the kernel set. */
function useChosen(): void {
  const chosen = chosenStreams();
  if (chosen === inUse) return;
  const before = inUse;
  inUse = chosen;
  for (let i = 0; i < Math.max(chosen?.length ?? 0, before?.length ?? 0); i++) {
    const number = chosen?.[i] ?? 0;
    if (number !== (before?.[i] ?? 0)) deviceControl().useStream(i, number);
  }
}

function cudaDevice(what: string, name: DeviceName): Device {
  const device = deviceOf(name);
  if (device === 'cpu') throw onlyOnCuda(what);
  return device;
}

/**
 * A stream of a CUDA device. A device has 31 streams beside the main one; further CudaStream objects share them.
 * Streams are never closed.
 */
export class CudaStream {
  /** Device whose work it orders. */
  readonly device: Device;
  /** 0 for the main stream. @internal */
  readonly number: number;

  /** Makes a stream beside the main one. Internal: `number` refers to one that exists. */
  constructor(device: DeviceName = 'cuda', number?: number) {
    this.device = cudaDevice('stream', device);
    if (number === undefined) {
      refuseWhileCapturing('a new stream');
      // From now on, memory is freed to the kernel set, because the list of reusable memory does not
      // distinguish streams.
      useDirectly(this.device);
      beforeKernels(useChosen);
    }
    this.number = number ?? deviceControl().makeStream(cudaIndex(this.device));
  }

  /** The driver's CUstream, for other libraries. */
  get handle(): bigint {
    return deviceControl().streamAddress(cudaIndex(this.device), this.number);
  }

  /** Records an event after the work that the stream has now. */
  record(event = new CudaEvent(this.device)): CudaEvent {
    event.record(this);
    return event;
  }

  /** Makes later work of this stream wait for an event, or for all work that another stream has now. */
  wait(other: CudaEvent | CudaStream): void {
    refuseWhileCapturing('wait of a stream');
    const event = other instanceof CudaStream ? other.record() : other;
    deviceControl().waitForEvent(cudaIndex(this.device), this.number, event.handle);
  }

  /** Blocks until all work of the stream has ended. */
  synchronize(): void {
    refuseWhileCapturing('synchronize');
    deviceControl().synchronizeStream(cudaIndex(this.device), this.number);
  }

  /** Resolves when all work that the stream has now has ended. */
  done(): Promise<void> {
    refuseWhileCapturing('done');
    return deviceControl().streamDone(cudaIndex(this.device), this.number);
  }
}

/** A point in a stream's order of work, to wait for or to measure times between. */
export class CudaEvent {
  /** Device of the stream on which it is recorded. */
  readonly device: Device;
  /** Internal. */
  readonly handle: object;

  constructor(device: DeviceName = 'cuda') {
    this.device = cudaDevice('event', device);
    this.handle = deviceControl().makeEvent(cudaIndex(this.device));
  }

  /** Records the event after the work that the stream has now; by default the current stream. */
  record(stream = currentStream(this.device)): void {
    refuseWhileCapturing('record of an event');
    deviceControl().recordEvent(this.handle, stream.number);
  }

  /** Whether the stream has passed the event. True if the event was never recorded. */
  get isReached(): boolean {
    refuseWhileCapturing('isReached');
    return deviceControl().isReached(this.handle);
  }

  /** Blocks until the stream has passed the event. */
  synchronize(): void {
    refuseWhileCapturing('synchronize');
    deviceControl().synchronizeEvent(this.handle);
  }

  /** Returns the milliseconds from this event to `later`, measured by the device. Both must have been reached. */
  elapsedMs(later: CudaEvent): number {
    return deviceControl().elapsedMs(this.handle, later.handle);
  }
}

/** Returns the stream on which work of a device runs now. */
export function currentStream(name: DeviceName = 'cuda'): CudaStream {
  const device = cudaDevice('stream', name);
  return new CudaStream(device, chosenStreams()?.[cudaIndex(device)] ?? 0);
}

/**
 * Runs `fn` with the given stream as the current one of its device. That also holds across the awaits of an
 * async `fn`; other tasks keep their streams. Does not order the streams: use stream.wait() and events if one
 * stream needs results of another.
 */
export function withStream<T>(stream: CudaStream, fn: () => T): T {
  refuseWhileCapturing('withStream');
  kernels();
  const streams = [...(chosenStreams() ?? [])];
  if (!(stream instanceof CudaStream)) throw badOption('withStream', 'a CudaStream', shown(stream));
  const index = cudaIndex(stream.device);
  while (streams.length < index) streams.push(0);
  streams[index] = stream.number;
  return withStreams(streams, fn);
}
