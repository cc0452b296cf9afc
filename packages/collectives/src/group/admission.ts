// Admits the operations of verbs (verbs/) to a group: checks each one, notifies the owners of the memory that
// it writes, and numbers it, in this order, so that a refused operation takes no number. Verbs see no more of
// their group.
import type { Verb } from '../all-verbs.ts';
import type { Backend, CollectiveOperation, Operation, Recv, Send, Supports } from '../backend.ts';
import { type CollectiveError, type Failure, listOverlaps, notWritable } from '../errors.ts';
import { Scratch } from '../reproducible/scratch.ts';
import type { BufferView } from './buffer.ts';
import { captureFault } from './captured.ts';
import { type Checked, faultOf } from './check.ts';
import { writtenBy } from './operation-memory.ts';
import { firstOverlap, type Named } from './overlap.ts';
import type { GroupState } from './state.ts';

export class Admission implements Checked {
  readonly rank: number;
  readonly size: number;
  readonly backend: string;
  readonly supports: Supports;
  /** Deadline of operations whose call has none of its own. */
  readonly timeoutMs: number;
  readonly scratch: Scratch;
  readonly #backend: Backend;
  readonly #state: GroupState;
  /** Number of collectives so far, which is the number of the next one. */
  #seq = 0;
  /** Number of messages so far by peer. The last element counts receives from any rank. */
  readonly #sends: number[];
  readonly #recvs: number[];
  #objects = 0;

  constructor(backend: Backend, state: GroupState, timeoutMs: number) {
    this.rank = backend.rank;
    this.size = backend.size;
    this.backend = backend.name;
    this.supports = backend.supports;
    this.timeoutMs = timeoutMs;
    this.scratch = new Scratch(backend.alloc);
    this.#backend = backend;
    this.#state = state;
    this.#sends = new Array<number>(backend.size + 1).fill(0);
    this.#recvs = new Array<number>(backend.size + 1).fill(0);
  }

  /** Returns whether the backend itself runs reproducible reductions of this verb. */
  reproduces(verb: Verb): boolean {
    return this.#backend.reproduces?.(verb) ?? false;
  }

  /** Sequence number of the next collective. */
  get seq(): number {
    return this.#seq;
  }

  /**
   * Checks a collective that has the number `seq` of this object, notifies the owners of the memory that it
   * writes, and counts it. Throws if the collective is refused.
   */
  accept<O extends CollectiveOperation>(operation: O): O {
    this.check(operation);
    return this.acceptChecked(operation);
  }

  /** Like accept(), but the caller has already checked the operation. */
  acceptChecked<O extends CollectiveOperation>(operation: O): O {
    this.#tellOf(operation);
    this.#seq++;
    return operation;
  }

  /** Like accept(), for a message that has the number messageSeq(). */
  acceptMessage<O extends Send | Recv>(operation: O): O {
    this.check(operation);
    this.#tellOf(operation);
    return this.countMessage(operation);
  }

  /** Like accept(), but the caller has already notified the owners with tell(). */
  acceptTold<O extends CollectiveOperation>(operation: O): O {
    this.check(operation);
    this.#seq++;
    return operation;
  }

  /** Counts a message that was checked and whose buffer's owner was notified. */
  countMessage<O extends Send | Recv>(operation: O): O {
    const { verb, peer } = operation;
    (verb === 'send' ? this.#sends : this.#recvs)[peer < 0 ? this.size : peer]!++;
    return operation;
  }

  /**
   * Notifies the owners of these buffers that an accepted call writes them; throws if one refuses. For calls
   * of several operations, or whose results are copied to the buffers. All `readOnly` are checked before the
   * first `written` is called, and the caller checks everything else before.
   */
  tell(verb: string, written: readonly BufferView[]): void {
    for (const { readOnly } of written) {
      if (readOnly !== undefined) throw this.error(notWritable(verb, readOnly.reason, readOnly.next));
    }
    for (const view of written) {
      try {
        view.written?.();
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw this.error(notWritable(verb, reason), { cause });
      }
    }
  }

  #tellOf(operation: Operation): void {
    const view = writtenBy(operation, this.rank);
    const residual = operation.verb === 'allReduce' ? operation.residual : null;
    if (view !== null && isWatched(view))
      this.tell(operation.verb, residual === null ? [view] : [view, residual]);
    else if (residual !== null && isWatched(residual)) this.tell(operation.verb, [residual]);
  }

  /** Takes the sequence number of a collective that a later step will start. */
  reserve(): number {
    return this.#seq++;
  }

  /** Throws the first fault of an operation. */
  check(operation: Operation): void {
    const fault = this.faultOf(operation);
    if (fault !== null) throw this.error(fault);
  }

  /** Returns the first fault of an operation; null if it has none. */
  faultOf(operation: Operation): Failure | null {
    const backend = this.#backend;
    return faultOf(this, operation) ?? backend.refuses?.(operation) ?? captureFault(backend, operation);
  }

  /** Throws if buffers of one call share memory, so that its result would depend on the order of its operations. */
  checkApart(verb: string, lists: readonly Named[]): void {
    const pair = firstOverlap(lists);
    if (pair !== null) throw this.error(listOverlaps(verb, ...pair));
  }

  /** Returns the sequence number of the next message to or from that peer; peer -1 stands for any rank. */
  messageSeq(verb: 'send' | 'recv', peer: number): number {
    return (verb === 'send' ? this.#sends : this.#recvs)[peer < 0 ? this.size : peer] ?? 0;
  }

  /** Returns a new number for an object that this rank sends. */
  nextObject(): number {
    return this.#objects++;
  }

  error(failure: Failure, options?: ErrorOptions): CollectiveError {
    return this.#state.error(failure, options);
  }
}

const isWatched = ({ readOnly, written }: BufferView) => readOnly !== undefined || written !== undefined;
