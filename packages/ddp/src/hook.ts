// What is done with a full bucket. A hook is a generator: it yields each operation that it has started, and goes on when
// that one has ended. Its first part runs inside backward, when the bucket is full; the rest at the end of backward,
// bucket after bucket. So all ranks start the same operations in the same order, and one hook serves groups that may
// block and groups that may not.
import type { BufferCarrier, Group, TypedArray, TypedBuffer, Work } from '@ringwise/collectives';

/** One gradient in a bucket. */
export interface BucketGradient {
  readonly name: string;
  /** Of the parameter; [count] where its autograd does not tell. */
  readonly shape: readonly number[];
  /** Its part of the bucket's memory. Throws where the bucket's does. */
  readonly data: TypedArray;
}

/** Gradients that travel together, of one dtype. The verbs of a group take it as it is, wherever it lies. */
export interface GradBucket extends TypedBuffer, BufferCarrier {
  /** Position among the buckets: they are launched in this order. */
  readonly index: number;
  readonly isLast: boolean;
  /** The whole memory, gaps between gradients included. ERR_DDP_INVALID where it is that of a device. */
  readonly data: TypedArray;
  readonly gradients: readonly BucketGradient[];
}

/**
 * Leaves in `bucket.data` the average over all ranks of what was there. Yields every operation that it starts on
 * `group`, and starts the same ones on every rank. State of one bucket belongs in a WeakMap with the bucket as key:
 * a rebuild makes new ones. An error that it throws aborts the group.
 */
export type CommHook = (bucket: GradBucket, group: Group) => Generator<Work, void, void>;

/** What happens without a hook. */
export function* plainHook(bucket: GradBucket, group: Group): Generator<Work, void, void> {
  yield group.allReduce(bucket, { op: 'avg' });
}

/** The sum, for averages with weights. */
export function* sumHook(bucket: GradBucket, group: Group): Generator<Work, void, void> {
  yield group.allReduce(bucket);
}
