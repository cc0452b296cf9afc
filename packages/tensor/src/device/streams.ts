// Streams: orders of execution of a CUDA device, which run beside each other. Everything starts on the main
// stream of its device unless withStream says otherwise. Memory follows by itself: what one stream has freed
// while another still works with it is used again when that has ended. The order of results does not: where a
// stream reads what another one writes, it waits for an event.
import { beforeKernels, deviceControl, kernels } from '../backends/index.ts';
import { chosenStreams, withStreams } from '../core/context.ts';
import { useDirectly } from '../core/storage.ts';
import { onlyOnCuda } from '../errors.ts';
import { refuseWhileCapturing } from './capture.ts';
import { cudaIndex, type Device, type DeviceName, deviceOf } from './device.ts';

/** Numbers of the streams in use, by device, as the kernel set has them. */
let inUse: readonly number[] | null = null;

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

/** A stream of a CUDA device. A device has 32; beyond that, new ones share them. Streams are never closed. */
export class CudaStream {
  readonly device: Device;
  /** Internal: 0 for the main stream. */
  readonly number: number;

  /** A stream beside the main one. */
  constructor(device: DeviceName = 'cuda', number?: number) {
    this.device = cudaDevice('stream', device);
    if (number === undefined) {
      refuseWhileCapturing('a new stream');
      // Memory that several streams share is not for a list that knows no streams.
      useDirectly(this.device);
      beforeKernels(useChosen);
    }
    this.number = number ?? deviceControl().makeStream(cudaIndex(this.device));
  }

  /** The driver's CUstream, for other libraries. */
  get handle(): bigint {
    return deviceControl().streamAddress(cudaIndex(this.device), this.number);
  }

  /** Marks the place that the stream has come to. */
  record(event = new CudaEvent(this.device)): CudaEvent {
    event.record(this);
    return event;
  }

  /** Lets what is started on this stream from now on wait for an event, or for all that another stream has now. */
  wait(other: CudaEvent | CudaStream): void {
    refuseWhileCapturing('wait of a stream');
    const event = other instanceof CudaStream ? other.record() : other;
    deviceControl().waitForEvent(cudaIndex(this.device), this.number, event.handle);
  }

  /** Blocks until all that was started on the stream has ended. */
  synchronize(): void {
    refuseWhileCapturing('synchronize');
    deviceControl().synchronizeStream(cudaIndex(this.device), this.number);
  }

  /** Resolves when all that was started on the stream until now has ended. */
  done(): Promise<void> {
    refuseWhileCapturing('done');
    return deviceControl().streamDone(cudaIndex(this.device), this.number);
  }
}

/** A point in the order of a stream, to wait for or to measure from. */
export class CudaEvent {
  readonly device: Device;
  /** Internal. */
  readonly handle: object;

  constructor(device: DeviceName = 'cuda') {
    this.device = cudaDevice('event', device);
    this.handle = deviceControl().makeEvent(cudaIndex(this.device));
  }

  /** Moves the event to where the stream is now; by default the stream of the code that calls. */
  record(stream = currentStream(this.device)): void {
    refuseWhileCapturing('record of an event');
    deviceControl().recordEvent(this.handle, stream.number);
  }

  /** Whether the stream has passed the event. True for one that was never recorded. */
  get isReached(): boolean {
    refuseWhileCapturing('isReached');
    return deviceControl().isReached(this.handle);
  }

  /** Blocks until the stream has passed the event. */
  synchronize(): void {
    refuseWhileCapturing('synchronize');
    deviceControl().synchronizeEvent(this.handle);
  }

  /** Milliseconds of the device between two events that have been reached. */
  elapsedMs(later: CudaEvent): number {
    return deviceControl().elapsedMs(this.handle, later.handle);
  }
}

/** The stream that work of a device goes to now. */
export function currentStream(name: DeviceName = 'cuda'): CudaStream {
  const device = cudaDevice('stream', name);
  return new CudaStream(device, chosenStreams()?.[cudaIndex(device)] ?? 0);
}

/**
 * Runs `fn` with its work for the stream's device on that stream; also across the awaits of an async `fn`,
 * while other tasks stay on theirs. Neither waits: use stream.wait() and events where one stream needs what
 * another computes.
 */
export function withStream<T>(stream: CudaStream, fn: () => T): T {
  refuseWhileCapturing('withStream');
  kernels();
  const streams = [...(chosenStreams() ?? [])];
  const index = cudaIndex(stream.device);
  while (streams.length < index) streams.push(0);
  streams[index] = stream.number;
  return withStreams(streams, fn);
}
