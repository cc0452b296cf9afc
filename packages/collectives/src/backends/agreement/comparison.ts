// Whether all ranks have made the same call: one gather on the host group, whatever the call starts. Where ranks differ in
// texts that are too long to be announced, the two in question send theirs to all, so that every rank can tell the first
// difference. Messages do that: they need no place among the collectives that have been called meanwhile.
import type { Backend, Operation, Running } from '../../backend.ts';
import { CollectiveError, type Failure, mismatch } from '../../errors.ts';
import { asBuffer } from '../../group/buffer.ts';
import type { BackendContext } from '../context.ts';
import { Announcements, differenceOf, textOf } from './announcement.ts';

/** Longer texts are compared, and not sent: nothing is allocated for them. */
const mostText = 2 ** 24;
/** Those of callers are lower, those of objects higher. */
const tag = 2 ** 29;

/** What all ranks have to have called. */
export interface Call {
  /** Of its first operation. */
  readonly verb: string;
  readonly seq: number;
  readonly timeoutMs: number;
  /** What it starts, in order. */
  readonly signatures: readonly string[];
}

/** Called once, with what is wrong in the words of the call. */
export type Decide = (error?: CollectiveError) => void;

/** What the comparisons of a group have in common. */
export interface Common {
  /** One has found a difference: what later ones would tell follows from it. */
  isFound: boolean;
  /** Once it can be told. */
  failure?: Failure;
  /** Of calls that have been compared. */
  readonly spare: Announcements[];
}

export class Comparison implements Running {
  readonly #context: BackendContext;
  readonly #host: Backend;
  readonly #common: Common;
  readonly #call: Call;
  readonly #text: Uint8Array;
  readonly #decide: Decide;
  /** On the host group, what is left of the current step: to wait for what has ended would be for ever. */
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

  /** Rank 0 and the first rank that has called something else: the same two on all ranks. */
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
        // A rank that was told first may have left since.
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
