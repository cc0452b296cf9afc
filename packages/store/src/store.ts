// The contract of every store; testing.ts tests it. A store is a small key/value map that all ranks of a job can reach.
// It carries addresses and counters at start-up, never training data. It behaves like PyTorch's TCPStore, so that a
// ringwise rank can use torch's store and the other way round.

/** Deadline and abort signal of a waiting call. */
export interface WaitOptions {
  /** Milliseconds until the call rejects with ERR_STORE_TIMEOUT. Default: the store's own timeoutMs. */
  readonly timeoutMs?: number;
  /** Aborts the wait; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/**
 * A key/value map that all ranks can reach. Keys are non-empty strings of less than 8 KiB in UTF-8. Values have up to
 * 8 MiB; a string is stored as UTF-8. Values that a store returns belong to the caller. Calls of one client take effect
 * in call order, except that get(), wait() and multiGet() read the store at some moment before they resolve. No call is
 * collective.
 */
export interface Store {
  /** Default deadline of waiting calls, in milliseconds. */
  readonly timeoutMs: number;

  /** Stores `value` under `key`, replacing the old value, and wakes calls that wait for `key`. */
  readonly set: (key: string, value: Uint8Array | string) => Promise<void>;
  /** Resolves with the value under `key`; waits until there is one. */
  readonly get: (key: string, options?: WaitOptions) => Promise<Uint8Array>;
  /**
   * Adds the safe integer `amount` to a counter that is stored as decimal text; an absent key counts as 0. Resolves
   * with the sum. Rejects if the value is not such a text; a TCP server can then only drop the connection, which ends
   * the client. Also rejects if the sum is no safe integer, but has changed the counter then.
   */
  readonly add: (key: string, amount: number) => Promise<number>;
  /**
   * Stores `desired` if the current value equals `expected`, or if the key is absent and `expected` is empty.
   * Resolves with the value that is then stored; for an absent key and a non-empty `expected` it resolves
   * with `expected`, as TCPStore does. If `desired` is unique to the caller, such as its rank, the caller has
   * won if the result equals it.
   */
  readonly compareSet: (
    key: string,
    expected: Uint8Array | string,
    desired: Uint8Array | string,
  ) => Promise<Uint8Array>;
  /** Waits until all keys exist. At the deadline the error names the keys that are still missing. */
  readonly wait: (keys: readonly string[], options?: WaitOptions) => Promise<void>;
  /** Resolves with whether all keys exist now. Does not wait. */
  readonly check: (keys: readonly string[]) => Promise<boolean>;
  /** Removes a key. Resolves with whether the key existed. */
  readonly delete: (key: string) => Promise<boolean>;
  /**
   * Resolves with the number of keys in the whole store, regardless of prefixes. A TCP server also counts a key of the
   * protocol.
   */
  readonly numKeys: () => Promise<number>;
  /** Appends to the value under `key`, creating it if absent. */
  readonly append: (key: string, value: Uint8Array | string) => Promise<void>;
  /**
   * Resolves with the values of all keys, in order; waits until all exist. If they do, TcpStore needs two round trips
   * for any number of keys.
   */
  readonly multiGet: (keys: readonly string[], options?: WaitOptions) => Promise<Uint8Array[]>;
  /** Stores all values as set() does. */
  readonly multiSet: (entries: ReadonlyMap<string, Uint8Array | string>) => Promise<void>;
  /**
   * Ends this client: pending waits and all later calls reject with ERR_STORE_CLOSED. A pending call that does not
   * wait may still take effect. The keys stay available to other clients.
   */
  readonly close: () => Promise<void>;
}
