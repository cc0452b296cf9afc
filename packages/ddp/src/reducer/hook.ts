// Communication hooks: how a full bucket is averaged. A hook is a generator. It yields each operation that it has
// started and is resumed when that operation has ended. Its first part runs when the bucket is launched, usually inside
// backward; the rest runs at the end of backward, one bucket after the other. So all ranks start the same operations in
// the same order, and one hook works for groups that can block and groups that cannot.
import type { BufferCarrier, Group, TypedArray, TypedBuffer, Work } from '@ringwise/collectives';
import { shown } from '../check.ts';
import { notAHook, notAWork } from '../errors.ts';
import type { Works } from './works.ts';

/** One gradient in a bucket. */
export interface BucketGradient {
  /** Name of the parameter. */
  readonly name: string;
  /** Shape of the parameter; [count] if its autograd does not provide it. */
  readonly shape: readonly number[];
  /** The gradient's part of the bucket's memory. Throws if the bucket's `data` throws. */
  readonly data: TypedArray;
}

/**
 * Gradients of one dtype that are averaged together. Can be passed to the verbs of a group, in host or device
 * memory.
 */
export interface GradBucket extends TypedBuffer, BufferCarrier {
  /** Index among the buckets, which are launched in this order. */
  readonly index: number;
  /** Whether it is the last bucket of this backward. */
  readonly isLast: boolean;
  /**
   * Name of the model and the bucket, such as "ddp bucket 3 of model 1". Pass it as the label of the
   * operations of the average, so that a rank that averages another model at the same time causes a mismatch.
   */
  readonly label: string;
  /** The whole memory, including gaps between gradients. Throws ERR_DDP_INVALID for device memory. */
  readonly data: TypedArray;
  /** Gradients in the bucket, in the order in which they lie in it. */
  readonly gradients: readonly BucketGradient[];
}

/** State of a hook that is equal on all ranks, such as a count of steps. */
export interface SharedHookState {
  /** Returns the state: plain values and typed arrays. The arrays may be the hook's own, which later steps change. */
  readonly save: () => unknown;
  /** Continues from a state that save() has returned here or on another rank. Copies its arrays. */
  readonly load: (state: never) => void;
}

/**
 * Replaces the values in `bucket.data` by their average over all ranks. Yields every operation that it starts on
 * `group`, and starts the same operations on every rank. An error that it throws aborts the group. With weights, the
 * values are weight · gradient divided by the mean weight of a rank, so that here, too, the result is their average.
 *
 * A hook may have two kinds of state. State of one rank, such as rounding errors, belongs in a WeakMap with the bucket
 * as the key: a rebuild and rebind() make new buckets, and so drop it on all ranks. State that is equal on all ranks
 * belongs in `shared`, so that an elastic job can restore it for a step that runs again, and send it to ranks that
 * join.
 */
export interface CommHook {
  (bucket: GradBucket, group: Group): Generator<Work, void, void>;
  /** State that is equal on all ranks, if the hook has one. */
  readonly shared?: SharedHookState;
  /** Whether ranks may end up with different gradients. Elastic jobs refuse such a hook. */
  readonly leavesRanksApart?: boolean;
}

/** Averages the bucket with one allReduce: the default hook. */
export function* plainHook(bucket: GradBucket, group: Group): Generator<Work, void, void> {
  yield group.allReduce(bucket, { op: 'avg', label: bucket.label });
}

/** Sums the bucket, for averages with weights. */
export function* sumHook(bucket: GradBucket, group: Group): Generator<Work, void, void> {
  yield group.allReduce(bucket, { label: bucket.label });
}

/** Averages the bucket when the sum of all weights is known: `total`, which is part of the label. */
export function* weightedHook(
  bucket: GradBucket,
  group: Group,
  total: number,
  label: string,
): Generator<Work, void, void> {
  if (total === group.size) yield group.allReduce(bucket, { op: 'avg', label });
  else yield group.allReduce(bucket, { op: 'premulSum', factor: 1 / total, label });
}

/** Throws ERR_DDP_INVALID if `hook` cannot be a hook. Its result is checked when it runs. */
export function checkHook(hook: unknown): void {
  if (typeof hook !== 'function') throw notAHook(shown(hook));
  const kind = (hook as { [Symbol.toStringTag]?: string })[Symbol.toStringTag];
  if (kind === 'AsyncFunction') throw notAHook('an async function');
  if (kind === 'AsyncGeneratorFunction') throw notAHook('an async generator function (async function*)');
}

/** Runs a hook and checks what it returns and yields. */
export function* runHook(hook: CommHook, bucket: GradBucket, group: Group): Works {
  const works: unknown = hook(bucket, group);
  if (!isGenerator(works)) throw notAHook(`a function that returns ${discarded(works)}`);
  for (const work of works) {
    const { fence } = (work ?? {}) as Partial<Work>;
    if (typeof fence !== 'function') throw notAWork(discarded(work));
    yield work as Work;
  }
}

/**
 * Describes an unused value. If it is a promise, its rejection is ignored, because another error is thrown
 * already.
 */
function discarded(value: unknown): string {
  const { then } = (value ?? {}) as Partial<PromiseLike<unknown>>;
  if (typeof then !== 'function') return shown(value);
  void Promise.resolve(value).catch(() => {});
  return 'a promise';
}

function isGenerator(value: unknown): value is Generator<unknown> {
  const { next, [Symbol.iterator]: iterate } = (value ?? {}) as Partial<Generator<unknown>>;
  return typeof next === 'function' && typeof iterate === 'function';
}
