// A verb that works in place on a list of buffers: small buffers are packed into one operation.
import type { AllReduce, Broadcast, Reduce } from '../backend.ts';
import type { Admission } from '../group/admission.ts';
import type { BufferView } from '../group/buffer.ts';
import type { Call } from '../group/steps.ts';
import { bundled } from './bundle.ts';
import { viewsOf } from './list.ts';

/** Starts one operation for each bundle of `buffers`; `operationOf` makes it. */
export function inPlace<O extends AllReduce | Reduce | Broadcast>(
  group: Admission,
  verb: O['verb'],
  buffers: Parameters<typeof viewsOf>[0],
  access: { readonly isRead: boolean; readonly isWritten: boolean },
  operationOf: (buffer: BufferView, seq: number, packing: number) => O,
): Call<void> {
  const views = viewsOf(buffers, verb);
  return bundled(group, verb, views, [{ views, blocks: 1, ...access }], ([buffer], seq, packing) =>
    operationOf(buffer as BufferView, seq, packing),
  );
}
