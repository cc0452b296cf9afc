// Compares one call among all ranks with a single allGather on the host group, however many operations the
// call starts. If ranks differ in texts that are too long to be announced whole, rank 0 and the first rank that
// differs send theirs to all, so that every rank can report the first difference. They use messages, which need
// no sequence number among the collectives that are called in the meantime.
import type { Backend, Operation, Running } from '../../backend.ts';
import { CollectiveError, type Failure, mismatch } from '../../errors.ts';
import { asBuffer } from '../../group/buffer.ts';
import type { BackendContext } from '../context.ts';
import { Announcements, differenceOf, textOf } from './announcement.ts';

/** Longer texts are not sent, to bound the memory: the announced beginnings are compared instead. */
const mostText = 2 ** 24;
/** Tag of these messages. Callers use lower tags, object messages higher ones. */
const tag = 2 ** 29;

/** The call that all ranks must have made. */
export interface Call {
  /** Verb of the call's first operation. */
  readonly verb: string;
  readonly seq: number;
  readonly timeoutMs: number;
  /** Signatures of the operations that the call starts, in order. */
  readonly signatures: readonly string[];
}

/** Called once with the outcome: undefined if all ranks agree, else the error to report for the call. */
export type Decide = (error?: CollectiveError) => void;

/** State that the comparisons of a group share. */
export interface Common {
  /** True once a comparison has found a mismatch. Mismatches in later calls are consequences of the first. */
  isFound: boolean;
  /** The mismatch, as soon as its text is known. */
  failure?: Failure;
  /** Memory of comparisons that have ended, for reuse. */
  readonly spare: Announcements[];
}

export class Comparison implements Running {
  readonly #context: BackendContext;
  readonly #host: Backend;
  readonly #common: Common;
  readonly #call: Call;
  readonly #text: Uint8Array;
  readonly #decide: Decide;
  /**
   * Host operations of the current step that have not settled, by index; null while one is being started.
   * Only these may be waited for: waiting for a settled operation would block for ever.
   */
  #running = new Map<number, Running | null>();
  #hasEnded = false;

  constructor(context: BackendContext, host: Backend, common: Common, call: Call, decide: Decide) {
    this.#context = context;
    this.#host = host;
    this.#common = common;
    this.#call = call;
    this.#text = textOf(call.signatures);
    this.#decide = decide;
  }

  start(): void {
    const { seq, timeoutMs } = this.#call;
    const announcements = this.#common.spare.pop() ?? new Announcements(this.#context.size);
    this.#onHost([announcements.gather(this.#text, seq, timeoutMs)], () => this.#compare(announcements));
  }

  readonly wait = (): void => {
    while (!this.#hasEnded) [...this.#running.values()].find((running) => running !== null)?.wait();
  };

  readonly requestProgress = (): void => {
    for (const running of this.#running.values()) running?.requestProgress?.();
  };

  /**
   * Reports the difference between rank 0 and the first rank that differs, which are the same two on all
   * ranks.
   */
  #compare(announcements: Announcements): void {
    const { rank, size } = this.#context;
    const other = announcements.firstOther();
    if (other < 0 || this.#common.isFound) {
      this.#common.spare.push(announcements);
      this.#end();
      return;
    }
    this.#common.isFound = true;
    const lengths = [0, other].map((side) => announcements.lengthOf(side));
    const texts = [0, other].map((side) => announcements.textOf(side));
    const isKnown = texts.every((text, at) => text.length === lengths[at]);
    if (isKnown || lengths.some((length) => length > mostText)) {
      this.#tell(other, texts);
      return;
    }
    const { seq, timeoutMs } = this.#call;
    const messages: Operation[] = [];
    for (const [at, side] of [0, other].entries()) {
      const text = side === rank ? this.#text : new Uint8Array(lengths[at]!);
      const common = { seq, timeoutMs, tag, buffer: asBuffer(text) } as const;
      texts[at] = text;
      if (side !== rank) messages.push({ ...common, verb: 'recv', peer: side });
      else
        for (let peer = 0; peer < size; peer++)
          if (peer !== rank) messages.push({ ...common, verb: 'send', peer });
    }
    this.#onHost(messages, () => this.#tell(other, texts));
  }

  #tell(other: number, texts: readonly Uint8Array[]): void {
    const { verb, seq } = this.#call;
    const { index, sides } = differenceOf(texts[0]!, texts[1]!);
    const [mine, theirs] = sides;
    const one = { rank: 0, signature: mine };
    this.#common.failure = mismatch(verb, seq + index, one, { rank: other, signature: theirs });
    this.#end(this.#common.failure);
  }

  #onHost(operations: readonly Operation[], then: () => void): void {
    const { verb, seq } = this.#call;
    let first: CollectiveError | undefined;
    const running = new Map<number, Running | null>(operations.map((_, at) => [at, null]));
    this.#running = running;
    for (const [at, operation] of operations.entries()) {
      const started = this.#host.start(operation, (error) => {
        first ??= error;
        running.delete(at);
        if (running.size > 0) return;
        if (first === undefined) return then();
        // A rank that reported the mismatch first may have left, so prefer the mismatch to the lost peer.
        const { code, what, peers, next } = this.#common.failure ?? first;
        this.#end({ code, what, peers, verb, seq, ...(next !== undefined && { next }) });
      });
      if (running.has(at)) running.set(at, started);
    }
  }

  #end(failure?: Failure): void {
    this.#hasEnded = true;
    const { group, rank, size } = this.#context;
    this.#decide(failure && new CollectiveError(failure, { group, rank, size }));
  }
}
