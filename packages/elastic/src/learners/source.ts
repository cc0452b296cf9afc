// A member's service for one learner: it sends its share of the state as of one step, and from then on the gradients of
// its share of the parameters in each step. Messages wait in a queue, so that the training never waits for the learner.
// If the learner falls far behind, the member drops the queue.
import { type GradParam, gradParamsSymbol, type PackedState, packState } from '@ringwise/ddp';
import type { Trained } from '../job/trained.ts';
import { type Chunk, chunksBySource, chunksOf } from '../transfer/chunks.ts';
import { sharesOf, sumOf } from '../transfer/shares.ts';
import type { Begin, Channel, FromLearner, FromSource, StepFrame } from './channel.ts';
import { copiedGradients, paramsBySource } from './gradients.ts';
import { optimizerValues } from './optimizer-values.ts';
import { Pool } from './pool.ts';
import { chunkBytes } from './replica.ts';

/** Maximum bytes of queued gradients for the learner, in addition to three times the share of the state. */
const mostWaiting = 16 << 20;
/** Number of buffers to keep for the gradients of later steps: as many as may be in flight. */
const mostFree = 16;

interface Item {
  readonly frame: FromSource;
  readonly bytes: Uint8Array | undefined;
}

/** The request of a learner: which share to send, and the step before which to copy the state. */
interface Task extends Begin {
  /** Whether the state has been copied. */
  readonly isCopied: boolean;
  readonly params: readonly GradParam[];
}

export class Source {
  readonly learner: string;
  readonly #channel: Channel<FromSource, FromLearner>;
  readonly #trained: Trained;
  readonly #stepMs: () => number;
  #task: Task | null = null;
  #queue: Item[] = [];
  /** Steps that the learner has not applied yet, and bytes of their gradients. */
  #waiting: { readonly step: number; readonly bytes: number }[] = [];
  #limit = mostWaiting;
  /** Maximum bytes in flight. */
  #window = mostWaiting;
  #sendingBytes = 0;
  #isClosed = false;
  /** The step whose gradients have been copied, while it is open whether the optimizer applies it. */
  #step: { readonly frame: StepFrame; readonly bytes: Uint8Array } | null = null;
  /** Buffers that have been sent, for reuse by later steps. */
  readonly #pool = new Pool(mostFree);

  constructor(
    learner: string,
    channel: Channel<FromSource, FromLearner>,
    trained: Trained,
    stepMs: () => number,
  ) {
    this.learner = learner;
    this.#channel = channel;
    this.#trained = trained;
    this.#stepMs = stepMs;
  }

  /** Serves the learner until it needs nothing more or is lost. Resolves then; does not reject. */
  async serve(): Promise<void> {
    const { finalSteps } = this.#trained;
    this.#push({ kind: 'hello', step: finalSteps, stepMs: this.#stepMs() });
    try {
      for (;;) {
        const { frame } = await this.#channel.receive(this.#pool.take);
        if (frame.kind === 'begin') this.#begin(frame);
        else if (frame.at === this.#task?.at) this.#noteTaken(frame.at, frame.step);
      }
    } catch {
      await this.close();
    }
  }

  #begin({ kind, at, share, of }: Begin): void {
    this.#drop();
    const { finalSteps, parts } = this.#trained;
    this.#task = null;
    if (finalSteps > at) this.#push({ kind: 'missed', at, step: finalSteps });
    else {
      const params = paramsBySource([...parts.source[gradParamsSymbol]()], of)[share]!;
      this.#task = { kind, at, share, of, isCopied: false, params };
    }
  }

  #noteTaken(at: number, taken: number): void {
    this.#waiting = this.#waiting.filter(({ step }) => step > taken);
    this.#push({ kind: 'heard', at, taken, behind: this.#waiting.length });
  }

  /** Called before the first forward of a step: copies the state if the learner has chosen this step. */
  beforeStep(): void {
    const task = this.#task;
    const { finalSteps } = this.#trained;
    if (task === null || task.isCopied || finalSteps < task.at) return;
    if (finalSteps > task.at) {
      this.#task = null;
      this.#push({ kind: 'missed', at: task.at, step: finalSteps });
      return;
    }
    const state = packState(this.#trained.save());
    this.#push({ kind: 'snapshot', at: task.at, header: state.header, stepMs: this.#stepMs() });
    const share = chunksBySource(chunksOf(state.arrays, chunkBytes), task.of)[task.share]!;
    let total = 0;
    for (const [index, chunk] of share.entries()) {
      this.#push({ kind: 'chunk', at: task.at, index }, copied(state, chunk));
      total += chunk.bytes;
    }
    this.#limit = mostWaiting + 3 * total;
    this.#window = mostWaiting + 2 * total;
    this.#task = { ...task, isCopied: true };
  }

  /** Called when the gradients of a step are final, before the optimizer uses them. */
  beforeUpdate(): void {
    const task = this.#task;
    if (!task?.isCopied) return;
    const { finalSteps: step, wholeOptimizer } = this.#trained;
    const { hasGrad, bytes } = copiedGradients(task.params, this.#pool.take);
    const optimizer = task.share === 0 ? optimizerValues(wholeOptimizer!) : null; // the training canBeFollowed
    const sums = isCompared(step - task.at) ? this.#sums(task) : null;
    const frame = {
      kind: 'step',
      at: task.at,
      step,
      isTaken: true,
      hasGrad,
      optimizer,
      sums,
    } as const;
    this.#step = { frame, bytes };
  }

  /** Called when the step has changed the parameters, or the optimizer has skipped it. */
  afterUpdate(isTaken: boolean): void {
    const step = this.#step;
    this.#step = null;
    if (step === null || this.#task === null) return;
    const { frame, bytes } = step;
    this.#waiting.push({ step: frame.step, bytes: bytes.length });
    const waitingBytes = this.#waiting.reduce((sum, each) => sum + each.bytes, 0);
    if (waitingBytes <= this.#limit) this.#push({ ...frame, isTaken }, bytes);
    else {
      this.#drop();
      this.#task = null;
      this.#push({ kind: 'behind', at: frame.at, step: frame.step, bytes: waitingBytes });
    }
  }

  /**
   * Ends the service after the queue has been sent, because the learner is in a view that begins after `step` steps.
   */
  end(step: number): void {
    this.#task = null;
    this.#push({ kind: 'end', step });
  }

  /** Drops the queue, and ends the connection. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#task = null;
    this.#drop();
    await this.#channel.close();
  }

  #sums({ share, of }: Task): number[] {
    const state = packState(this.#trained.save());
    const sizes = state.arrays.map(({ bytes }) => bytes);
    return sharesOf(sizes, of)[share]!.map((index) => sumOf(onHost(state, index)));
  }

  #drop(): void {
    this.#queue = [];
    this.#waiting = [];
  }

  #push(frame: FromSource, bytes?: Uint8Array): void {
    if (this.#isClosed) return;
    this.#queue.push({ frame, bytes });
    this.#send();
  }

  /**
   * Sends the queue in order, without waiting for one message before the next. A training without pauses lets the event
   * loop turn about once per step, and would otherwise send only one message per step.
   */
  #send(): void {
    while (this.#queue.length > 0 && this.#sendingBytes < this.#window) {
      const { frame, bytes } = this.#queue.shift()!;
      this.#deliver(frame, bytes).catch(() => this.close());
    }
  }

  async #deliver(frame: FromSource, bytes: Uint8Array | undefined): Promise<void> {
    const size = bytes?.length ?? 0;
    this.#sendingBytes += size;
    try {
      await this.#channel.send(frame, bytes);
    } finally {
      this.#sendingBytes -= size;
    }
    if (frame.kind === 'step') this.#pool.give(bytes!);
    this.#send();
  }
}

/** Returns whether to send checksums: after 1, 2, 4, 8 … steps, because they need a pass over the whole state. */
const isCompared = (steps: number): boolean => steps > 0 && Number.isInteger(Math.log2(steps));

function onHost(state: PackedState, index: number): Uint8Array {
  return state.arrays[index]!.read() as Uint8Array;
}

function copied(state: PackedState, { bytes, pieces }: Chunk): Uint8Array {
  const copy = new Uint8Array(bytes);
  let at = 0;
  for (const { array, from, to } of pieces) {
    copy.set(onHost(state, array).subarray(from, to), at);
    at += to - from;
  }
  return copy;
}
