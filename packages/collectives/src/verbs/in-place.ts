// Runs all-reduce, reduce or broadcast on a list of buffers, in place.
import type { AllReduce, Broadcast, Reduce } from '../backend.ts';
import type { Admission } from '../group/admission.ts';
import type { BufferView } from '../group/buffer.ts';
import type { Call } from '../group/steps.ts';
import { bundled } from './bundle.ts';
import { viewsOf } from './list.ts';

/**
 * Packs small `buffers` of one dtype into bundles and starts one operation for each bundle or large buffer.
 * `operationOf` makes the operation from its buffer, its sequence number in the group and a digest of the packed
 * lengths, which the ranks compare. `access` says whether the operation reads and writes the buffers on this rank.
 * The returned call ends when all operations have ended.
 */
export function inPlace<O extends AllReduce | Reduce | Broadcast>(
  group: Admission,
  verb: O['verb'],
  buffers: Parameters<typeof viewsOf>[0],
  access: { readonly isRead: boolean; readonly isWritten: boolean },
  operationOf: (buffer: BufferView, seq: number, packing: number) => O,
): Call<void> {
  const views = viewsOf(buffers, verb);
  // One role, so each operation has exactly one buffer.
  return bundled(
    group,
    verb,
    views,
    [{ name: 'buffer', views, blocks: 1, ...access }],
    ([buffer], seq, packing) => operationOf(buffer as BufferView, seq, packing),
  );
}
