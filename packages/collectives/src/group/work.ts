// A running call as the caller sees it: a thenable that creates a promise only when it is awaited. A failure
// that is never awaited therefore causes no unhandled rejection. If an operation has failed, the next call on the
// group reports it, or else the end of the process (unawaited.ts).
import type { Running } from '../backend.ts';
import { CollectiveError, cannotBlock, type Failure, notEnded } from '../errors.ts';
import { checkOptions } from '../options/known-options.ts';
import type { CallOptions } from '../options/options.ts';
import { rejectedToCaller } from './caller-line.ts';
import { heard, keepUnheard, told } from './unawaited.ts';

/** The members of a group that a Work names in its own errors. */
export interface WorkOwner {
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  readonly backend: string;
  /** Whether close() was called. */
  readonly isClosed?: boolean;
  /** Whether the program has received an error of the group. A Work sets it. */
  isReported?: boolean;
  /** Whether the program has received the error of a call that came after close(). A Work sets it. */
  isClosedReported?: boolean;
}

/** Called once, with the error or the value. */
export type Finish<T> = (error?: CollectiveError, value?: T) => void;

/**
 * A running call. Awaiting it gives `T`: the sender's rank for recv(), the object for the object forms, else
 * undefined.
 */
export class Work<T = void> implements PromiseLike<T> {
  /** The name of the call, such as 'allReduce'. */
  readonly verb: string;
  /**
   * Sequence number of the call's first operation among the group's collectives; for send and recv, among the
   * messages to or from that peer. -1 if the call was refused or has no operations.
   */
  readonly seq: number;
  /** Name of the group that the call was made on. */
  readonly group: string;
  readonly #owner: WorkOwner;
  readonly #running: Running | null;
  #ended = false;
  #isRefused = false;
  #error: CollectiveError | undefined;
  #value: T | undefined;
  #promise: Promise<T> | undefined;
  #finish: (() => void) | undefined;

  /**
   * `start` begins the call. It may call its argument before it returns only to refuse the call or if there
   * is nothing to do.
   */
  constructor(verb: string, seq: number, owner: WorkOwner, start: (finish: Finish<T>) => Running | null) {
    this.verb = verb;
    this.seq = seq;
    this.group = owner.name;
    this.#owner = owner;
    let hasStarted = false;
    this.#running = start((error, value) => {
      this.#ended = true;
      this.#error = error;
      this.#value = value;
      if (error !== undefined) {
        this.#isRefused = !hasStarted;
        if (this.#promise === undefined) keepUnheard(this, { error, group: owner });
      }
      this.#finish?.();
    });
    hasStarted = true;
  }

  /** Whether the call has ended, with or without an error. Does not block. */
  get done(): boolean {
    return this.#ended;
  }

  /** Same as `done`, under PyTorch's name. */
  get isCompleted(): boolean {
    return this.#ended;
  }

  /**
   * Resolves like awaiting the Work, but rejects with ERR_COLL_TIMEOUT if the call has not ended after
   * `timeoutMs` milliseconds. The call then continues: its buffers stay in use, the group stays usable, and
   * the Work may be awaited again. Without `timeoutMs`, only the deadline of the call itself applies.
   */
  async wait(options: CallOptions = {}): Promise<T> {
    checkOptions({ error: (failure) => this.#failed(failure) }, 'wait', options);
    const { timeoutMs } = options;
    if (timeoutMs === undefined || this.#ended) return await this.#asPromise();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(this.#failed(notEnded(this.verb, this.seq, timeoutMs))), timeoutMs);
    });
    return await Promise.race([this.#asPromise(), late]).finally(() => clearTimeout(timer));
  }

  /**
   * Blocks this thread until the call has ended. Returns its value or throws its error. For device memory, work
   * that is queued on the memory's stream afterwards sees the results; the nccl backend makes the stream wait for
   * them instead of blocking. Throws ERR_COLL_UNSUPPORTED if the backend may not block.
   */
  fence(): T {
    if (!this.#ended) {
      if (this.#running === null) throw this.#failed(cannotBlock('fence', this.#owner.backend));
      if (this.#running.fence !== undefined) this.#running.fence();
      else this.#running.wait();
    }
    if (this.#error !== undefined) {
      this.#tell();
      throw this.#error;
    }
    return this.#value as T;
  }

  // biome-ignore lint/suspicious/noThenProperty: a Work is awaited like a promise
  then<A = T, B = never>(
    onDone?: ((value: T) => A | PromiseLike<A>) | null,
    onError?: ((error: CollectiveError) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#asPromise().then(onDone, onError);
  }

  /** Waits as await does, and calls `onError` if the operation fails. Returns a promise of the result. */
  catch<B = never>(onError?: ((error: CollectiveError) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.#asPromise().catch(onError);
  }

  /** Waits as await does, and then calls `onEnd`, whether or not the operation failed. */
  finally(onEnd?: (() => void) | null): Promise<T> {
    return this.#asPromise().finally(onEnd);
  }

  #failed(failure: Failure): CollectiveError {
    const { name: group, rank, size } = this.#owner;
    return new CollectiveError(failure, { group, rank, size });
  }

  /** Notes that the program gets the error. */
  #tell(): void {
    told(this.#owner, this.#error);
    heard(this);
  }

  #asPromise(): Promise<T> {
    this.#promise ??= new Promise((resolve, reject) => {
      this.#finish = () => {
        if (this.#error === undefined) return resolve(this.#value as T);
        this.#tell();
        // The stack of a refused call has the caller already.
        if (this.#isRefused) reject(this.#error);
        else resolve(rejectedToCaller(this.#error));
      };
      if (this.#ended) this.#finish();
      else if (this.#running?.attempt !== undefined) this.#running.attempt();
      else this.#running?.requestProgress?.();
    });
    return this.#promise;
  }
}
