// Whether a step is being recorded (compile.ts), and what it cannot contain: whatever the recording would leave out of the
// runs to come, such as reads by the host and work of the CPU.
import type { Device } from './device.ts';
import { notRecordable } from './errors.ts';
import type { Stream } from './kernels.ts';
import { type StepRecording, sharedRecording } from './protocol.ts';
import type { Generator } from './random.ts';

export interface Recording {
  readonly device: Device;
  /** What other packages see of it. */
  readonly shared: StepRecording;
  /** The position of a generator, as every run has its own. */
  readonly draw: (generator: Generator) => Stream;
  /** Says what an optimiser step reads in each run. The kernel is called right after. */
  readonly optimizes: (numbers: () => OptimizerNumbers) => void;
}

/** What an optimiser step reads beside its tensors. */
export interface OptimizerNumbers {
  /** How often each tensor has been changed, this time included. */
  readonly steps: Float64Array;
  readonly lr: number;
  readonly weightDecay: number;
  readonly momentum: number;
  readonly smoothing: number;
  readonly epsilon: number;
}

let current: Recording | null = null;

/** What is being recorded now; null: nothing. */
export const recording = (): Recording | null => current;

/** Runs `fn` while `next` is being recorded. */
export function whileRecording<T>(next: Recording, fn: () => T): T {
  const before = current;
  const sharedBefore = sharedRecording.now;
  current = next;
  sharedRecording.now = next.shared;
  try {
    return fn();
  } finally {
    current = before;
    sharedRecording.now = sharedBefore;
  }
}

/** Throws while a step is recorded: `what` is not part of its later runs. */
export function refuseWhileRecording(what: string): void {
  if (current !== null) throw notRecordable(what, current.device);
}
