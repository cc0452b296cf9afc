// Collectives in steps that are captured into a CUDA graph once and launched many times, such as those of
// `compile` in @ringwise/tensor. The capturing library announces a capture in a global slot that all packages
// share. During a capture, a collective on the captured stream becomes part of the step: ranks compare it
// now, and the device does not execute it. Each launch of the step counts as one more operation of the group,
// ordered with the others. Operations that would not be repeated by a launch are refused.
import type { Backend, CapturedOperation, Operation, Running, Settle } from '../backend.ts';
import { type Failure, notCapturable } from '../errors.ts';
import type { BufferView } from './buffer.ts';
import { memoryOf } from './operation-memory.ts';
import { isMessage } from './steps.ts';

declare global {
  interface RingwiseSymbols {
    readonly capture: unique symbol;
  }
}

/**
 * A step that is being captured. The capturing library puts it in
 * `globalThis[Symbol.for('ringwise.capture')].now`.
 */
export interface StepCapture {
  /** The CUstream that is being captured. */
  readonly stream: bigint;
  /**
   * Registers `ended`, to be called at the end of the capture while the stream is still captured. Its
   * argument is true if the capture was abandoned.
   */
  readonly onEnd: (ended: (isAbandoned: boolean) => void) => void;
  /**
   * Registers `before`, to be called before each launch with the CUstream of the launch; the function that it
   * returns is called after the launch. If `before` throws, the step is not launched.
   */
  readonly onRun: (before: (stream: bigint) => () => void) => void;
  /** Destroys the captured graph. */
  readonly drop: () => void;
}

const slots = globalThis as { [key: symbol]: { now: StepCapture | null } | undefined };
const captureSymbol: RingwiseSymbols['capture'] = Symbol.for('ringwise.capture') as never;
slots[captureSymbol] ??= { now: null };
const slot = slots[captureSymbol];

/** Returns the step that is being captured on this thread, or null. */
export const captureNow = (): StepCapture | null => slot.now;

/**
 * Runs `once` as if no step was being captured: its operations run now, and no launch of the step repeats them. For
 * exchanges whose result is a constant of the step. All ranks that capture the step must call it.
 */
export function outsideCapture<T>(once: () => T): T {
  const { now } = slot;
  slot.now = null;
  try {
    return once();
  } finally {
    slot.now = now;
  }
}

/**
 * Returns why an operation cannot be part of the step that is being captured, or null if it can or if there is
 * no capture.
 */
export function captureFault({ name, captures }: Backend, operation: Operation): Failure | null {
  const { now } = slot;
  if (now === null) return null;
  const { verb } = operation;
  if (captures === undefined) return notCapturable(verb, `the ${name} backend takes no part in that`);
  if (isMessage(verb)) return notCapturable(verb, 'messages go through the host');
  const view = memoryOf(operation);
  if (view === null) return notCapturable(verb, 'it has no memory');
  if (view.handle?.stream !== now.stream) return notCapturable(verb, `its memory is ${memoryText(view)}`);
  const why = captures.refuses?.(operation) ?? null;
  return why === null ? null : notCapturable(verb, why);
}

/** A captured step that contains operations of one group. */
export interface CapturedStep {
  /** Index among the group's captured steps; the same on all ranks. */
  readonly number: number;
  /** Operations of the step. The reference keeps their memory alive as long as the step. */
  readonly operations: Operation[];
  /** Description of the step's operations. Set at the end of the capture. */
  contents: string;
  runs: number;
}

export class CapturedSteps {
  readonly #backend: Backend;
  readonly #run: (step: CapturedStep, stream: bigint) => () => void;
  readonly #steps = new WeakMap<StepCapture, CapturedStep>();
  readonly #captures: WeakRef<StepCapture>[] = [];
  /** Operations of the current capture that the step has not been made to wait for yet. */
  readonly #open = new Set<CapturedOperation>();

  /**
   * `run` is called before each launch; it orders the launch among the group's calls and returns what to call
   * after it.
   */
  constructor(backend: Backend, run: (step: CapturedStep, stream: bigint) => () => void) {
    this.#backend = backend;
    this.#run = run;
  }

  /**
   * Adds an operation to the step that is being captured. Its `wait` and `fence` order later work of the step
   * after it.
   */
  add(operation: Operation, settle: Settle): Running {
    const step = this.#stepOf(slot.now!);
    step.operations.push(operation);
    let added: CapturedOperation | null = null;
    let hasEnded = false;
    added = this.#backend.captures!.add(operation, step.number, (error) => {
      hasEnded = true;
      if (added !== null) this.#open.delete(added);
      settle(error);
    });
    if (!hasEnded) this.#open.add(added);
    const { join } = added;
    return { wait: join, fence: join };
  }

  /**
   * Destroys all captured steps, which cannot be launched again. NCCL cannot close while a graph contains its
   * operations.
   */
  drop(): void {
    for (const capture of this.#captures.splice(0)) capture.deref()?.drop();
  }

  #stepOf(now: StepCapture): CapturedStep {
    const known = this.#steps.get(now);
    if (known !== undefined) return known;
    const step: CapturedStep = { number: this.#captures.length, operations: [], contents: '', runs: 0 };
    this.#steps.set(now, step);
    this.#captures.push(new WeakRef(now));
    now.onEnd((isAbandoned) => {
      step.contents = contentsOf(step);
      for (const operation of [...this.#open]) isAbandoned ? operation.forget() : operation.join();
    });
    now.onRun((stream) => this.#run(step, stream));
    return step;
  }
}

const memoryText = ({ device, host }: BufferView): string =>
  host === null ? `on another stream, that of ${device.kind}:${device.index}` : 'on the host';

/** Returns a description such as "captured step 0: 3 allReduce, 1 broadcast". */
function contentsOf({ number, operations }: CapturedStep): string {
  const counts = new Map<string, number>();
  for (const { verb } of operations) counts.set(verb, (counts.get(verb) ?? 0) + 1);
  const list = [...counts].map(([verb, count]) => `${count} ${verb}`).join(', ');
  return `captured step ${number}: ${list}`;
}
