// What makes a backend, and what it gets.
import type { Store } from '@ringwise/store';
import type { Backend } from '../backend.ts';

/** What a factory gets. Everything in it is the same on all ranks, except rank, localRank and localSize. */
export interface BackendContext {
  /** For the exchange of addresses (see exchange()). Only this backend of this group sees its keys. */
  readonly store: Store;
  readonly rank: number;
  readonly size: number;
  /** Rank among the ranks of this host, and how many these are. */
  readonly localRank: number;
  readonly localSize: number;
  /** Host name or address of the store's host; the interface that routes there is the one to use. */
  readonly masterHost: string;
  /** Name of the group, for error messages. */
  readonly group: string;
  /** Milliseconds that making the backend may take; also the default deadline of the group's operations. */
  readonly timeoutMs: number;
  /** Proves to peers that this process belongs to the job; null if the job has none. */
  readonly secret: string | null;
}

/** Makes one rank's part of a backend. Collective: all ranks call it; resolves when the rank can communicate. */
export type BackendFactory = (context: BackendContext) => Promise<Backend>;
