// What init() takes.
import type { Store } from '@ringwise/store';

export interface InitOptions {
  /** This process's rank and the number of ranks; both or neither. Default: from the launcher. */
  readonly rank?: number;
  readonly size?: number;
  /** Where the ranks meet. It stays the caller's and must stay open as long as the group. */
  readonly store?: Store;
  /** 'env://', 'tcp://host:port?rank=0&size=2' (rank 0 hosts a store there) or 'file:///directory?rank=0&size=2'. */
  readonly url?: string;
  /**
   * A registered name, or 'auto': 'solo' for one rank; for more 'host', and by NCCL what is done on CUDA memory.
   * Default: RINGWISE_BACKEND, or 'auto'.
   */
  readonly backend?: string;
  /** Deadline of init() and default deadline of the operations. Default: RINGWISE_TIMEOUT_MS or 300,000 ms. */
  readonly timeoutMs?: number;
  /** Appears in error messages. Groups of one name meet in the order of the init() calls. Default 'world'. */
  readonly name?: string;
}
