// Collectives in steps that are captured once and then run many times, such as those of `compile` of @ringwise/tensor. The
// capturer tells of itself in a slot that all packages share. While one is at work, a collective on its stream becomes part
// of the step: it is compared between the ranks now, and not carried out. Each run of the step is one more operation of the
// group, which takes its turn among the others. What would not happen again in a run is refused.
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

/** A step that is being captured, as its capturer offers it in `globalThis[Symbol.for('ringwise.capture')].now`. */
export interface StepCapture {
  /** The CUstream that is captured. */
  readonly stream: bigint;
  /** Calls `ended` at the end of the capture, as its last part; with true when it is given up instead. */
  readonly onEnd: (ended: (isGivenUp: boolean) => void) => void;
  /**
   * Calls `before` ahead of each run with the CUstream that it goes to, and what that returns when it has been started. There is no
   * run if `before` throws.
   */
  readonly onRun: (before: (stream: bigint) => () => void) => void;
  /** Destroys what was captured. */
  readonly drop: () => void;
}

const slots = globalThis as { [key: symbol]: { now: StepCapture | null } | undefined };
const captureSymbol: RingwiseSymbols['capture'] = Symbol.for('ringwise.capture') as never;
slots[captureSymbol] ??= { now: null };
const slot = slots[captureSymbol];

/** The step that is being captured on this thread now; null: none. */
export const captureNow = (): StepCapture | null => slot.now;

/** A captured step with operations of one group in it. */
export interface CapturedStep {
  /** Among the group's captured steps: the same on all ranks. */
  readonly number: number;
  /** Kept as long as the step: they are what holds the memory. */
  readonly operations: Operation[];
  /** Set at the end of the capture. */
  contents: string;
  runs: number;
}

export class CapturedSteps {
  readonly #backend: Backend;
  readonly #run: (step: CapturedStep, stream: bigint) => () => void;
  readonly #steps = new WeakMap<StepCapture, CapturedStep>();
  readonly #captures: WeakRef<StepCapture>[] = [];
  /** Of the capture that is under way, what the step does not wait for yet. */
  readonly #open = new Set<CapturedOperation>();

  /** `run` takes a run's turn among the calls of the group. */
  constructor(backend: Backend, run: (step: CapturedStep, stream: bigint) => () => void) {
    this.#backend = backend;
    this.#run = run;
  }

  /** Why an operation cannot be part of the step that is being captured; null where it can, or nothing is captured. */
  faultOf(operation: Operation): Failure | null {
    const now = slot.now;
    if (now === null) return null;
    const { verb } = operation;
    const { name, captures } = this.#backend;
    if (captures === undefined) return notCapturable(verb, `the ${name} backend takes no part in that`);
    if (isMessage(verb)) return notCapturable(verb, 'messages go through the host');
    const view = memoryOf(operation);
    if (view === null) return notCapturable(verb, 'it has no memory');
    if (view.handle?.stream !== now.stream) return notCapturable(verb, `its memory is ${placeOf(view)}`);
    const why = captures.refuses?.(operation) ?? null;
    return why === null ? null : notCapturable(verb, why);
  }

  /** Makes an operation part of the step that is being captured. */
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

  /** Gives up all steps: there are no more runs. NCCL cannot end while they have something of it. */
  drop(): void {
    for (const capture of this.#captures.splice(0)) capture.deref()?.drop();
  }

  #stepOf(now: StepCapture): CapturedStep {
    const known = this.#steps.get(now);
    if (known !== undefined) return known;
    const step: CapturedStep = { number: this.#captures.length, operations: [], contents: '', runs: 0 };
    this.#steps.set(now, step);
    this.#captures.push(new WeakRef(now));
    now.onEnd((isGivenUp) => {
      step.contents = contentsOf(step);
      for (const operation of [...this.#open]) isGivenUp ? operation.forget() : operation.join();
    });
    now.onRun((stream) => this.#run(step, stream));
    return step;
  }
}

const placeOf = ({ device, host }: BufferView): string =>
  host === null ? `on another stream, that of ${device.kind}:${device.index}` : 'on the host';

/** "captured step 0: 3 allReduce, 1 broadcast" */
function contentsOf({ number, operations }: CapturedStep): string {
  const counts = new Map<string, number>();
  for (const { verb } of operations) counts.set(verb, (counts.get(verb) ?? 0) + 1);
  const list = [...counts].map(([verb, count]) => `${count} ${verb}`).join(', ');
  return `captured step ${number}: ${list}`;
}
