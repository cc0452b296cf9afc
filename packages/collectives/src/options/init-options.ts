// Options of init().
import type { Store } from '@ringwise/store';

/** Options of init(). Those that are left out come from the launcher's environment. */
export interface InitOptions {
  /** Rank of this process and number of ranks; both or neither. Default: from the launcher. */
  readonly rank?: number;
  /** Number of ranks; see `rank`. */
  readonly size?: number;
  /** Store for the rendezvous. The caller keeps it and must leave it open as long as the group. */
  readonly store?: Store;
  /**
   * 'env://', 'tcp://host:port?rank=0&size=2' (rank 0 serves a store there) or
   * 'file:///directory?rank=0&size=2'. Default: MASTER_ADDR and MASTER_PORT, else what the launcher says.
   */
  readonly url?: string;
  /**
   * Name of a backend, or 'auto': 'solo' for one rank; for more ranks 'host', with NCCL for CUDA memory if
   * available, or 'tcp' with a warning if the native addon cannot be loaded. Default: RINGWISE_BACKEND, or 'auto'.
   */
  readonly backend?: string;
  /**
   * Deadline of init() and default deadline of operations in milliseconds. Default: RINGWISE_TIMEOUT_MS or
   * 300,000.
   */
  readonly timeoutMs?: number;
  /**
   * Name for error messages. Groups of the same name meet in the order of the init() calls. Default 'world'.
   */
  readonly name?: string;
}
