// The state of a group: open, failed or closed. Refuses calls once the group was closed, or after its first error. Also
// builds the errors that name the group and this rank.
import type { Backend, Supports } from '../backend.ts';
import {
  type CollectiveCode,
  CollectiveError,
  type Failure,
  failedEarlier,
  groupClosed,
  unexpected,
} from '../errors.ts';

/**
 * Codes of the failures that close() throws if no call has reported them. Ranks may leave while calls are pending when
 * the program closes the group, so a lost rank is none of them; nor is abort(), which the program has called itself.
 */
const closeReports: ReadonlySet<CollectiveCode> = new Set([
  'ERR_COLL_MISMATCH',
  'ERR_COLL_TIMEOUT',
  'ERR_COLL_SYSTEM',
]);

export class GroupState {
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  /** Name of the backend. */
  readonly backend: string;
  readonly supports: Supports;
  /** Whether the program has received an error of this group, from a call or from close(). */
  isReported = false;
  /** Whether the program has received the error of a call that came after close(). */
  isClosedReported = false;
  #failure: CollectiveError | null = null;
  #isClosed = false;
  readonly #instead: string | undefined;

  /** `instead`: see GroupOptions. */
  constructor(backend: Backend, name: string, instead?: string) {
    this.name = name;
    this.#instead = instead;
    this.rank = backend.rank;
    this.size = backend.size;
    this.backend = backend.name;
    this.supports = backend.supports;
  }

  /** The first error, or null. */
  get failure(): CollectiveError | null {
    return this.#failure;
  }
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Throws if the group takes no more calls. `verb` is the call that the error names. */
  checkOpen(verb: string): void {
    if (this.#isClosed) throw this.error(groupClosed(verb, this.#instead));
    if (this.#failure !== null)
      throw this.error(failedEarlier(verb, this.#failure, this.#instead), { cause: this.#failure });
  }

  /**
   * Makes the group refuse all later calls because of `error`, unless an earlier error does already. Returns
   * the error, as a CollectiveError.
   */
  fail(error: unknown): CollectiveError {
    const known = CollectiveError.is(error)
      ? error
      : this.error(unexpected(this.rank, String(error)), { cause: error });
    this.#failure ??= known;
    const { code, cause } = this.#failure;
    // Backends have only the text of the reason that this rank gave to abort().
    if (code === 'ERR_COLL_ABORTED' && known.code === code && cause !== undefined) known.cause ??= cause;
    return known;
  }

  /** Throws the failure of the group if no call has reported it: the program may use wrong results. */
  throwUnreported(): void {
    if (this.#failure === null || this.isReported || !closeReports.has(this.#failure.code)) return;
    this.isReported = true;
    throw this.#failure;
  }

  /** Makes the group refuse all later calls because it is closed. */
  close(): void {
    this.#isClosed = true;
  }

  error(failure: Failure, options?: ErrorOptions): CollectiveError {
    return new CollectiveError(failure, { group: this.name, rank: this.rank, size: this.size }, options);
  }
}
