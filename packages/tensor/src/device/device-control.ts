// The interface of a kernel set for CUDA devices beyond computing: streams, events, captured steps and pinned
// memory. Devices and streams are numbers; stream 0 is the main one of a device. Events and steps belong to
// the device for which they were made.

import type { Memory, OptimizerNumbers } from '../backends/operands.ts';
import type { DType } from '../core/dtype.ts';
import type { Device } from './device.ts';

export interface DeviceMemoryUse {
  /** Bytes that are allocated from the device, in use or cached. */
  readonly reservedBytes: number;
  /** Bytes of pinned host memory that are allocated for copies. */
  readonly pinnedBytes: number;
}

export interface DeviceControl {
  readonly makeStream: (device: number) => number;
  /** Makes later work of this JavaScript thread on the device run on the stream. */
  readonly useStream: (device: number, stream: number) => void;
  /** Blocks until all work of the stream has ended. */
  readonly synchronizeStream: (device: number, stream: number) => void;
  /** Resolves when all work that the stream has now has ended. */
  readonly streamDone: (device: number, stream: number) => Promise<void>;
  /** Makes later work of the stream wait for the event. */
  readonly waitForEvent: (device: number, stream: number, event: object) => void;
  /** Returns the driver's handle of a stream. */
  readonly streamAddress: (device: number, stream: number) => bigint;

  readonly makeEvent: (device: number) => object;
  readonly recordEvent: (event: object, stream: number) => void;
  readonly isReached: (event: object) => boolean;
  /** Blocks until the event is reached. */
  readonly synchronizeEvent: (event: object) => void;
  /** Returns the milliseconds between two events. Throws unless both have been reached. */
  readonly elapsedMs: (from: object, to: object) => number;

  readonly makeStep: (device: number) => object;
  /** Destroys the step. Every later call with it throws. */
  readonly disposeStep: (step: object) => void;
  /** Between enterStep and leaveStep, this thread allocates from the step's memory. */
  readonly enterStep: (step: object) => void;
  readonly leaveStep: (step: object) => void;
  /** Between beginStep and endStep, the work of this thread is captured and does not run. */
  readonly beginStep: (step: object) => void;
  readonly endStep: (step: object) => void;
  /** Ends a capture in place of endStep, and drops the captured work. */
  readonly abortStep: (step: object) => void;
  /**
   * Makes putNumbers and putOptimizer start again at the first entry, for the next run. Their calls must come in the
   * order of the capture.
   */
  readonly rewindStep: (step: object) => void;
  /** Stores numbers that the next run reads. Returns the index of the first among all numbers of the step. */
  readonly putNumbers: (step: object, numbers: Float64Array) => number;
  /** Stores the numbers that an optimiser's kernel reads in the next run. */
  readonly putOptimizer: (step: object, numbers: OptimizerNumbers) => void;
  /** Starts a run on the current stream. */
  readonly launchStep: (step: object) => void;
  /** Destroys the captured graph on the device; the step cannot run any more. */
  readonly dropStep: (step: object) => void;
  /** Returns the driver's handle of the stream that is captured. */
  readonly stepStream: (step: object) => bigint;

  /**
   * Allocates memory that other processes and devices can map. Allocates ordinary memory if the device does
   * not support that, or if the memory is too small to benefit.
   */
  readonly allocShareable: (dtype: DType, count: number, device: Device) => Memory;
  /** Sets whether products of float32 may round their factors to TF32, with 10 bits of fraction. */
  readonly allowTf32: (isAllowed: boolean) => void;
  readonly memoryUse: (device: number) => DeviceMemoryUse;
  /** Returns the bytes of memory that the device has in all. */
  readonly totalBytes: (device: number) => number;
  /** Makes the garbage collector count bytes that JavaScript objects hold elsewhere. Negative: they hold fewer. */
  readonly countForCollector: (bytes: number) => void;
  /**
   * Allocates pinned host memory, which devices access directly. It returns to a cache when it is
   * garbage-collected.
   */
  readonly pin: (bytes: number) => ArrayBuffer;
  readonly isPinned: (buffer: ArrayBufferLike) => boolean;
  /** Returns whether no copy of startWrite or startRead still uses this memory. True for memory that is not pinned. */
  readonly isIdle: (pinned: ArrayBufferLike) => boolean;
  /**
   * Writes like `Kernels.write`. Other memory than pinned memory may be changed at once: the call waits only while more
   * than 256 MiB of such writes are in flight. Pinned memory must not be changed until isIdle.
   */
  readonly startWrite: (memory: Memory, offset: number, array: ArrayBufferView) => void;
  /** Starts to copy the elements from `offset` on to an array in pinned memory, in stream order. */
  readonly startRead: (memory: Memory, offset: number, pinned: ArrayBufferView) => void;
}
