// What is done with a full bucket. A hook is a generator: it yields each operation that it has started, and goes on when
// that one has ended. Its first part runs inside backward, when the bucket is full; the rest at the end of backward,
// bucket after bucket. So all ranks start the same operations in the same order, and one hook serves groups that may
// block and groups that may not.
import type { BufferCarrier, Group, TypedArray, TypedBuffer, Work } from '@ringwise/collectives';
import { shown } from '../check.ts';
import { notAHook, notAWork } from '../errors.ts';
import type { Works } from './works.ts';

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
  /**
   * Names the model and the bucket, such as "ddp bucket 3 of model 1". Pass it to the operations that take part in the average: then a
   * rank that averages another model at that moment is a mismatch.
   */
  readonly label: string;
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
  yield group.allReduce(bucket, { op: 'avg', label: bucket.label });
}

/** The sum, for averages with weights. */
export function* sumHook(bucket: GradBucket, group: Group): Generator<Work, void, void> {
  yield group.allReduce(bucket, { label: bucket.label });
}

/** Throws ERR_DDP_INVALID for what cannot be a hook; what it returns is looked at when it runs. */
export function checkHook(hook: unknown): void {
  if (typeof hook !== 'function') throw notAHook(shown(hook));
  const kind = (hook as { [Symbol.toStringTag]?: string })[Symbol.toStringTag];
  if (kind === 'AsyncFunction') throw notAHook('an async function');
  if (kind === 'AsyncGeneratorFunction') throw notAHook('an async generator function (async function*)');
}

/** Runs a hook. What it returns and yields is checked. */
export function* runHook(hook: CommHook, bucket: GradBucket, group: Group): Works {
  const works: unknown = hook(bucket, group);
  if (!isGenerator(works)) throw notAHook(`a function that returns ${discarded(works)}`);
  for (const work of works) {
    const { fence } = (work ?? {}) as Partial<Work>;
    if (typeof fence !== 'function') throw notAWork(discarded(work));
    yield work as Work;
  }
}

/** Describes a value that is not used. The error that is thrown for it is the one that counts, so its own is dropped. */
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
