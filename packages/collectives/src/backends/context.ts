// How a backend is made: the factory and its argument.
import type { Store } from '@ringwise/store';
import type { Backend } from '../backend.ts';

/** Argument of a backend factory on one rank. */
export interface BackendContext {
  /**
   * Store for the exchange of addresses (see exchange()). Its keys are visible only to this backend of this
   * group.
   */
  readonly store: Store;
  /** Rank of this process in the group. */
  readonly rank: number;
  /** Number of ranks of the group. */
  readonly size: number;
  /** Rank among the ranks of this host, and the number of ranks on this host. */
  readonly localRank: number;
  /** Number of ranks of the group on this host. */
  readonly localSize: number;
  /**
   * Host name or address of the store's host, or rank 0's host name if the store has no address. Between hosts,
   * the backend uses the network interface that routes to it.
   */
  readonly masterHost: string;
  /** Name of the group, for error messages. */
  readonly group: string;
  /**
   * Time in milliseconds that making the backend may take, and the default deadline of the group's
   * operations.
   */
  readonly timeoutMs: number;
  /**
   * Stops connecting when it is aborted: the factory rejects and releases everything that keeps the process alive.
   * Backends other than host and tcp ignore it and continue until `timeoutMs`.
   */
  readonly signal?: AbortSignal;
  /** Secret of the job, which proves to peers that this process belongs to it; null if the job has none. */
  readonly secret: string | null;
}

/**
 * Makes one rank's part of a backend. Collective: all ranks call it. Resolves when the rank can communicate.
 */
export type BackendFactory = (context: BackendContext) => Promise<Backend>;
