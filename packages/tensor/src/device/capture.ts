// The capture of a step (compile.ts) that is under way, and the check that refuses work that would be missing in
// later runs, such as reads by the host and work of the CPU.

import type { OptimizerNumbers, Stream } from '../backends/operands.ts';
import { type StepCapture, sharedCapture } from '../core/protocol.ts';
import { notCapturable } from '../errors.ts';
import type { RandomSource } from '../random/source.ts';
import type { Device } from './device.ts';

export interface Capture {
  readonly device: Device;
  /** The part that other packages use. */
  readonly shared: StepCapture;
  /** Returns a stream of random numbers whose seed and position each run reads from the generator. */
  readonly draw: (generator: RandomSource) => Stream;
  /**
   * Registers a function that returns the numbers that an optimiser step reads in each run. The caller must call the
   * optimiser's kernel next, because runs write these numbers in the order of the kernels.
   */
  readonly optimizes: (numbers: () => OptimizerNumbers) => void;
}

let current: Capture | null = null;

/** Returns the current capture; null if there is none. */
export const capturing = (): Capture | null => current;

/** Runs `fn` with `next` as the current capture. */
export function whileCapturing<T>(next: Capture, fn: () => T): T {
  const before = current;
  const sharedBefore = sharedCapture.now;
  current = next;
  sharedCapture.now = next.shared;
  try {
    return fn();
  } finally {
    current = before;
    sharedCapture.now = sharedBefore;
  }
}

/** Throws if a step is being captured, because `what` would not be part of its later runs. */
export function refuseWhileCapturing(what: string): void {
  if (current !== null) throw notCapturable(what, current.device);
}
