// A running operation as its caller sees it: a thenable that begins to be a promise only when somebody asks.
// A failure that nobody awaits therefore never becomes an unhandled rejection; it poisons the group, and the
// next call on the group reports it.
import type { Running, Settle, Verb } from './backend.ts';
import { CollectiveError, cannotBlock } from './errors.ts';

/** The part of a group that a Work names in its own errors. */
export interface WorkOwner {
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  readonly backend: string;
}

export class Work implements PromiseLike<void> {
  readonly verb: Verb;
  /** Position in the group's sequence; for send and recv in that pair's. -1 if the call was refused. */
  readonly seq: number;
  readonly #owner: WorkOwner;
  readonly #running: Running | null;
  #ended = false;
  #error: CollectiveError | undefined;
  #promise: Promise<void> | undefined;
  #finish: Settle | undefined;

  /** `start` begins the operation; it may call `settle` at once only to refuse it. */
  constructor(verb: Verb, seq: number, owner: WorkOwner, start: (settle: Settle) => Running | null) {
    this.verb = verb;
    this.seq = seq;
    this.#owner = owner;
    this.#running = start((error) => {
      this.#ended = true;
      this.#error = error;
      this.#finish?.(error);
    });
  }

  /** Whether the operation has ended, well or badly. Does not block. */
  get done(): boolean {
    return this.#ended;
  }

  /** Blocks this thread until the operation has ended; throws its error. ERR_COLL_UNSUPPORTED if it may not block. */
  fence(): void {
    if (!this.#ended) {
      if (this.#running === null) throw this.#cannotBlock();
      this.#running.wait();
    }
    if (this.#error !== undefined) throw this.#error;
  }

  // biome-ignore lint/suspicious/noThenProperty: a Work is awaited like a promise
  then<A = void, B = never>(
    // biome-ignore lint/suspicious/noConfusingVoidType: as in PromiseLike<void>, so that `await` gives void
    onDone?: ((nothing: void) => A | PromiseLike<A>) | null,
    onError?: ((error: CollectiveError) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#asPromise().then(onDone, onError);
  }

  catch<B = never>(onError?: ((error: CollectiveError) => B | PromiseLike<B>) | null) {
    return this.#asPromise().catch(onError);
  }

  finally(onEnd?: (() => void) | null): Promise<void> {
    return this.#asPromise().finally(onEnd);
  }

  #cannotBlock(): CollectiveError {
    const { name: group, rank, size, backend } = this.#owner;
    return new CollectiveError(cannotBlock('fence', backend), { group, rank, size });
  }

  #asPromise(): Promise<void> {
    this.#promise ??= new Promise((resolve, reject) => {
      this.#finish = (error) => (error === undefined ? resolve() : reject(error));
      if (this.#ended) this.#finish(this.#error);
    });
    return this.#promise;
  }
}
