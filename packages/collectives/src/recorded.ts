// Collectives in steps that are recorded once and then run many times, such as those of `compile` of @ringwise/tensor. The
// recorder tells of itself in a slot that all packages share. While one is at work, a collective on its stream becomes part
// of the step: it is compared between the ranks now, and not carried out. Each run of the step is one more operation of the
// group, which takes its turn among the others. What would not happen again in a run is refused.
import type { Backend, Operation, RecordedOperation, Running, Settle } from './backend.ts';
import { type BufferView, memoryOf } from './buffer.ts';
import { type Failure, notRecordable } from './errors.ts';
import { isMessage } from './steps.ts';

declare global {
  interface RingwiseSymbols {
    readonly recording: unique symbol;
  }
}

/** A step that is being recorded, as its recorder offers it in `globalThis[Symbol.for('ringwise.recording')].now`. */
export interface StepRecording {
  /** The CUstream that is recorded. */
  readonly stream: bigint;
  /** Calls `ended` at the end of the recording, as its last part; with true when it is given up instead. */
  readonly onEnd: (ended: (isGivenUp: boolean) => void) => void;
  /**
   * Calls `before` ahead of each run with the CUstream that it goes to, and what that returns when it has been started. There is no
   * run if `before` throws.
   */
  readonly onRun: (before: (stream: bigint) => () => void) => void;
  /** Destroys what was recorded. */
  readonly drop: () => void;
}

const slots = globalThis as { [key: symbol]: { now: StepRecording | null } | undefined };
const recordingSymbol: RingwiseSymbols['recording'] = Symbol.for('ringwise.recording') as never;
slots[recordingSymbol] ??= { now: null };
const slot = slots[recordingSymbol];

/** The step that is being recorded on this thread now; null: none. */
export const recordingNow = (): StepRecording | null => slot.now;

/** A recorded step with operations of one group in it. */
export interface RecordedStep {
  /** Among the group's recorded steps: the same on all ranks. */
  readonly number: number;
  /** Kept as long as the step: they are what holds the memory. */
  readonly operations: Operation[];
  /** Set at the end of the recording. */
  contents: string;
  runs: number;
}

export class RecordedSteps {
  readonly #backend: Backend;
  readonly #run: (step: RecordedStep, stream: bigint) => () => void;
  readonly #steps = new WeakMap<StepRecording, RecordedStep>();
  readonly #recordings: WeakRef<StepRecording>[] = [];
  /** Of the recording that is under way, what the step does not wait for yet. */
  readonly #open = new Set<RecordedOperation>();

  /** `run` takes a run's turn among the calls of the group. */
  constructor(backend: Backend, run: (step: RecordedStep, stream: bigint) => () => void) {
    this.#backend = backend;
    this.#run = run;
  }

  /** Why an operation cannot be part of the step that is being recorded; null where it can, or nothing is recorded. */
  faultOf(operation: Operation): Failure | null {
    const now = slot.now;
    if (now === null) return null;
    const { verb } = operation;
    const { name, recorded } = this.#backend;
    if (recorded === undefined) return notRecordable(verb, `the ${name} backend takes no part in that`);
    if (isMessage(verb)) return notRecordable(verb, 'messages go through the host');
    const view = memoryOf(operation);
    if (view === null) return notRecordable(verb, 'it has no memory');
    if (view.handle?.stream !== now.stream) return notRecordable(verb, `its memory is ${placeOf(view)}`);
    const why = recorded.refuses?.(operation) ?? null;
    return why === null ? null : notRecordable(verb, why);
  }

  /** Makes an operation part of the step that is being recorded. */
  add(operation: Operation, settle: Settle): Running {
    const step = this.#stepOf(slot.now!);
    step.operations.push(operation);
    let added: RecordedOperation | null = null;
    let hasEnded = false;
    added = this.#backend.recorded!.add(operation, step.number, (error) => {
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
    for (const recording of this.#recordings.splice(0)) recording.deref()?.drop();
  }

  #stepOf(now: StepRecording): RecordedStep {
    const known = this.#steps.get(now);
    if (known !== undefined) return known;
    const step: RecordedStep = { number: this.#recordings.length, operations: [], contents: '', runs: 0 };
    this.#steps.set(now, step);
    this.#recordings.push(new WeakRef(now));
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

/** "recorded step 0: 3 allReduce, 1 broadcast" */
function contentsOf({ number, operations }: RecordedStep): string {
  const counts = new Map<string, number>();
  for (const { verb } of operations) counts.set(verb, (counts.get(verb) ?? 0) + 1);
  const list = [...counts].map(([verb, count]) => `${count} ${verb}`).join(', ');
  return `recorded step ${number}: ${list}`;
}
