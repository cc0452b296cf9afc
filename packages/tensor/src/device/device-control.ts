// What a kernel set offers for CUDA devices beyond computing: streams, events, captured steps and pinned
// memory. Devices and streams are numbers; stream 0 is the main one of a device. Events and steps belong to
// the device they were made for.

import type { Memory, OptimizerNumbers } from '../backends/operands.ts';
import type { DType } from '../core/dtype.ts';
import type { Device } from './device.ts';

export interface DeviceMemoryUse {
  /** Bytes that are held from the device, in use or not. */
  readonly reservedBytes: number;
  /** Bytes of host memory that are held for copies. */
  readonly pinnedBytes: number;
}

export interface DeviceControl {
  readonly makeStream: (device: number) => number;
  /** What this thread starts from now on runs on the stream. */
  readonly useStream: (device: number, stream: number) => void;
  readonly synchronizeStream: (device: number, stream: number) => void;
  readonly streamDone: (device: number, stream: number) => Promise<void>;
  readonly waitForEvent: (device: number, stream: number, event: object) => void;
  /** The driver's handle of a stream. */
  readonly streamAddress: (device: number, stream: number) => bigint;

  readonly makeEvent: (device: number) => object;
  readonly recordEvent: (event: object, stream: number) => void;
  readonly isReached: (event: object) => boolean;
  readonly synchronizeEvent: (event: object) => void;
  readonly elapsedMs: (from: object, to: object) => number;

  readonly makeStep: (device: number) => object;
  readonly disposeStep: (step: object) => void;
  /** What runs between enter and leave takes memory of the step. */
  readonly enterStep: (step: object) => void;
  readonly leaveStep: (step: object) => void;
  /** What is started between begin and end is captured and does not run. */
  readonly beginStep: (step: object) => void;
  readonly endStep: (step: object) => void;
  readonly abortStep: (step: object) => void;
  /** Numbers of the next run go to their places from the first on. */
  readonly rewindStep: (step: object) => void;
  readonly putNumbers: (step: object, numbers: Float64Array) => number;
  readonly putOptimizer: (step: object, numbers: OptimizerNumbers) => void;
  readonly launchStep: (step: object) => void;
  /** Takes what was captured off the device; there are no more runs. */
  readonly dropStep: (step: object) => void;
  /** The driver's handle of the stream that is captured. */
  readonly stepStream: (step: object) => bigint;

  /**
   * Memory that other processes and devices can map, where the device has such and it is large enough to gain
   * by it.
   */
  readonly allocShareable: (dtype: DType, count: number, device: Device) => Memory;
  /** Whether products of float32 may be computed in TF32, with factors of 10 bits. */
  readonly allowTf32: (isAllowed: boolean) => void;
  readonly memoryUse: (device: number) => DeviceMemoryUse;
  /** Host memory that devices copy to and from by themselves. Goes back to a cache once it is collected. */
  readonly pin: (bytes: number) => ArrayBuffer;
  readonly isPinned: (buffer: ArrayBufferLike) => boolean;
  /** Whether no copy of startWrite or startRead works with this pinned memory. */
  readonly isIdle: (pinned: ArrayBufferLike) => boolean;
  /**
   * As write, without waiting for writes before it; from pinned memory without taking the elements before it
   * returns.
   */
  readonly startWrite: (memory: Memory, offset: number, array: ArrayBufferView) => void;
  /** Fills an array of pinned memory with the elements from `offset`, in the order of the stream. */
  readonly startRead: (memory: Memory, offset: number, pinned: ArrayBufferView) => void;
}
