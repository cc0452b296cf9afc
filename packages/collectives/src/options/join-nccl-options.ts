// What joinNccl() takes.
import type { Store } from '@ringwise/store';

export interface JoinNcclOptions {
  /** Where all ranks find the unique id. It stays the caller's. */
  readonly store: Store;
  /**
   * Under which key. PyTorch (2.13) has that of its default group under `0//cuda//0` in a store that init_process_group() was
   * given, and under `default_pg/0//cuda//0` in the one that it opens itself.
   */
  readonly key: string;
  readonly rank: number;
  readonly size: number;
  /** How long to wait for the id and for the others, and the default deadline of operations. Default: 300,000. */
  readonly timeoutMs?: number;
  /** For error messages. Default: 'nccl'. */
  readonly name?: string;
}
