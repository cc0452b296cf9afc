// Averages gradients without a wrapper, for autograds that return gradients (a tree of arrays) instead of
// storing them.
import {
  allocHost,
  asBuffer,
  type BufferLike,
  type BufferView,
  type Group,
  type Work,
} from '@ringwise/collectives';
import { checkGroup, shown } from '../check.ts';
import { invalidArgument, readOnlyGradient } from '../errors.ts';
import { defaultBucketBytes } from '../wrapper/options.ts';
import { carrier, copy, slice } from './memory.ts';
import { planBuckets } from './plan.ts';
import { runAwaiting } from './works.ts';

/**
 * Replaces every gradient by its average over all ranks, in place. Collective: every rank passes the same
 * list. Resolves when all are averaged. Small gradients are sent together in buckets. Does nothing in a group
 * of one.
 *
 * @example
 * ```ts
 * const gradients = [new Float32Array(8), new Float32Array(2)]; // of an autograd without hooks
 * await averageGradients(gradients, group);
 * ```
 */
export async function averageGradients(grads: Iterable<BufferLike>, group: Group): Promise<void> {
  checkGroup('averageGradients', group);
  const got = ArrayBuffer.isView(grads) ? `one ${grads.constructor.name}: put it into a list` : shown(grads);
  if (ArrayBuffer.isView(grads) || typeof grads?.[Symbol.iterator] !== 'function')
    throw invalidArgument('averageGradients: grads', 'a list of gradients', got);
  const views = [...grads].map((grad) => asBuffer(grad, 'averageGradients'));
  for (const { readOnly } of views) if (readOnly !== undefined) throw readOnlyGradient(readOnly);
  if (group.size === 1) return;
  const limits = { bucketBytes: defaultBucketBytes, firstBucketBytes: defaultBucketBytes };
  // Starts all averages before it awaits the first, so that packing a bucket overlaps with sending the bucket
  // before it.
  const started = planBuckets(views, limits).flatMap(({ dtype, count, slots }) => {
    const members = slots.map(({ param, offset }) => ({ grad: views[param]!, offset }));
    const canPack = members.length > 1 && members.every(({ grad }) => grad.host !== null);
    if (!canPack) return members.map(({ grad }) => ({ work: average(grad, group), pairs: [] }));
    const bucket = allocHost(count, dtype);
    const pairs = members.map(({ grad, offset }) => ({ grad, part: slice(bucket, offset, grad.count) }));
    for (const { grad, part } of pairs) {
      copy(grad, part);
      grad.written?.();
    }
    return [{ work: average(bucket, group), pairs }];
  });
  for (const { work, pairs } of started) {
    await runAwaiting([work]);
    for (const { grad, part } of pairs) copy(part, grad);
  }
}

function average(view: BufferView, group: Group): Work {
  return group.allReduce(carrier(view), { op: 'avg' });
}
