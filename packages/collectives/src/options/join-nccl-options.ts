// Options of joinNccl().
import type { Store } from '@ringwise/store';

/** Options of joinNccl(). */
export interface JoinNcclOptions {
  /** Store in which all ranks find the unique id. The caller keeps it. */
  readonly store: Store;
  /**
   * Key of the unique id. For its default group PyTorch (2.13) uses `0//cuda//0` in a store that was passed
   * to init_process_group(), and `default_pg/0//cuda//0` in a store that it opens itself.
   */
  readonly key: string;
  /** Rank of this process in the communicator. */
  readonly rank: number;
  /** Number of ranks of the communicator. */
  readonly size: number;
  /**
   * Milliseconds to wait for the id and for the other ranks, and default deadline of operations. Default:
   * 300,000.
   */
  readonly timeoutMs?: number;
  /** Name for error messages. Default: 'nccl'. */
  readonly name?: string;
}
