// The contract of every store, and of the suite in testing.ts. A store is a small key/value map that all ranks
// of a job can reach; it carries addresses and counters at start-up, never training data. Semantics follow
// PyTorch's TCPStore, so that a ringwise rank can use torch's store and the other way round.

/** How long a blocking call may wait, and what may end it early. */
export interface WaitOptions {
  /** Milliseconds until the call rejects with ERR_STORE_TIMEOUT. Default: the store's own timeoutMs. */
  readonly timeoutMs?: number;
  /** Ends the wait early; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/**
 * Keys are non-empty strings of up to 8 KiB, values are up to 8 MiB (a string is stored as UTF-8). Values that a
 * store returns belong to the caller. Calls of one client take effect in the order in which they were made, except
 * that get(), wait() and multiGet() look at the store at some moment before they resolve. None is collective.
 */
export interface Store {
  /** Default deadline of waiting calls, in milliseconds. */
  readonly timeoutMs: number;

  /** Stores `value` under `key`, replacing what was there, and wakes whoever waits for `key`. Resolves when stored. */
  readonly set: (key: string, value: Uint8Array | string) => Promise<void>;
  /** The value under `key`; waits until there is one. */
  readonly get: (key: string, options?: WaitOptions) => Promise<Uint8Array>;
  /**
   * Adds the safe integer `amount` to a counter kept as decimal text (absent counts as 0); returns the sum. Rejects
   * if the value is no such text; a TCP server can then only drop the connection, which ends the client.
   */
  readonly add: (key: string, amount: number) => Promise<number>;
  /**
   * Stores `desired` if the present value equals `expected`, or if the key is absent and `expected` is empty.
   * Returns the value stored now; for an absent key and a non-empty `expected` it returns `expected`, as
   * TCPStore does. A caller whose `desired` is its own, such as its rank, has won when the result equals it.
   */
  readonly compareSet: (
    key: string,
    expected: Uint8Array | string,
    desired: Uint8Array | string,
  ) => Promise<Uint8Array>;
  /** Waits until all keys exist. At the deadline the error names the keys that are still missing. */
  readonly wait: (keys: readonly string[], options?: WaitOptions) => Promise<void>;
  /** Whether all keys exist now. Never waits. */
  readonly check: (keys: readonly string[]) => Promise<boolean>;
  /** Removes a key; true if it was there. */
  readonly delete: (key: string) => Promise<boolean>;
  /** How many keys the whole store holds (a prefix does not narrow it). */
  readonly numKeys: () => Promise<number>;
  /** Appends to the value under `key`, creating it if absent. */
  readonly append: (key: string, value: Uint8Array | string) => Promise<void>;
  /** The values of all keys, in order; waits until all are there. Two round trips on TcpStore, for any number. */
  readonly multiGet: (keys: readonly string[], options?: WaitOptions) => Promise<Uint8Array[]>;
  readonly multiSet: (entries: ReadonlyMap<string, Uint8Array | string>) => Promise<void>;
  /** Ends this client: pending and later calls reject with ERR_STORE_CLOSED. Keys stay for the others. */
  readonly close: () => Promise<void>;
}
