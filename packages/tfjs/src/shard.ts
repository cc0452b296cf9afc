// Cuts tensors into equal parts, one for each rank.
import * as tf from '@tensorflow/tfjs';
import { invalidArgument, tooFewRows, unevenRows } from './errors.ts';

/** The members of a group that shard() uses. */
export interface Place {
  /** Rank of this process. */
  readonly rank: number;
  /** Number of ranks. */
  readonly size: number;
}

/**
 * Returns this rank's rows of a tensor, or of all tensors in a list or an object: rows `rank`, `rank + size`, `rank + 2
 * · size` and so on, so that the k-th batches of all ranks together are the k-th batch of one process. All ranks get
 * equally many: of 10 rows on 4 ranks, each gets 2, and the last 2 rows are left out. Returns new tensors, which the
 * caller disposes of. Not collective: all ranks must have the same rows in the same order.
 *
 * @example
 * ```ts
 * import { shard } from '@ringwise/tfjs';
 * import * as tf from '@tensorflow/tfjs';
 *
 * const { images, labels } = shard({ images: tf.ones([96, 28, 28]), labels: tf.zeros([96]) }, group);
 * ```
 */
export function shard<T extends tf.Tensor | readonly tf.Tensor[] | Readonly<Record<string, tf.Tensor>>>(
  data: T,
  group: Place,
): T {
  if (!Number.isInteger(group?.rank) || !Number.isInteger(group?.size))
    throw invalidArgument('shard', 'shard(tensors, group)', 'no group');
  const tensors = data instanceof tf.Tensor ? [data] : Object.values(data ?? {});
  if (tensors.length === 0 || !tensors.every((each) => each instanceof tf.Tensor && each.rank > 0))
    throw invalidArgument(
      'shard',
      'a tensor with rows, a list of such tensors, or an object of them',
      'something else',
    );
  const counts = tensors.map(({ shape }) => shape[0]!);
  if (counts.some((count) => count !== counts[0])) throw unevenRows(counts);
  const { rank, size } = group;
  const length = Math.floor(counts[0]! / size);
  if (length === 0) throw tooFewRows(counts[0]!, size);
  return tf.tidy(() => {
    const rows = tf.tensor1d(
      Int32Array.from({ length }, (_, i) => i * size + rank),
      'int32',
    );
    const own = (tensor: tf.Tensor) => tf.gather(tensor, rows);
    if (data instanceof tf.Tensor) return own(data);
    if (Array.isArray(data)) return data.map(own);
    return Object.fromEntries(Object.entries(data).map(([name, tensor]) => [name, own(tensor)]));
  }) as T;
}
