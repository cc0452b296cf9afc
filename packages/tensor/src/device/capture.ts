// Whether a step is being captured (compile.ts), and what it cannot contain: whatever the capture would leave
// out of the runs to come, such as reads by the host and work of the CPU.

import type { OptimizerNumbers, Stream } from '../backends/operands.ts';
import { type StepCapture, sharedCapture } from '../core/protocol.ts';
import { notCapturable } from '../errors.ts';
import type { RandomSource } from '../random/source.ts';
import type { Device } from './device.ts';

export interface Capture {
  readonly device: Device;
  /** What other packages see of it. */
  readonly shared: StepCapture;
  /** The position of a generator, as every run has its own. */
  readonly draw: (generator: RandomSource) => Stream;
  /** Says what an optimiser step reads in each run. The kernel is called right after. */
  readonly optimizes: (numbers: () => OptimizerNumbers) => void;
}

let current: Capture | null = null;

/** What is being captured now; null: nothing. */
export const capturing = (): Capture | null => current;

/** Runs `fn` while `next` is being captured. */
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

/** Throws while a step is captured: `what` is not part of its later runs. */
export function refuseWhileCapturing(what: string): void {
  if (current !== null) throw notCapturable(what, current.device);
}
