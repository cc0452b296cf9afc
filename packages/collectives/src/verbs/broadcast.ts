// broadcast, in place on one buffer per rank or on a list of buffers.
import type { Broadcast } from '../backend.ts';
import type { Admission } from '../group/admission.ts';
import { asBuffer, type BufferView } from '../group/buffer.ts';
import type { Call } from '../group/steps.ts';
import { checkOptions } from '../options/known-options.ts';
import type { Buffers, RootOptions } from '../options/options.ts';
import { inPlace } from './in-place.ts';
import { isList } from './list.ts';

export function broadcast(group: Admission, buffers: Buffers, options: RootOptions): Call<void> {
  checkOptions(group, 'broadcast', options);
  const { timeoutMs = group.timeoutMs, label, root = 0 } = options;
  const operationOf = (buffer: BufferView, seq: number, packing: number): Broadcast => {
    return { verb: 'broadcast', seq, timeoutMs, packing, label, buffer, root };
  };
  const access = { isRead: root === group.rank, isWritten: root !== group.rank };
  if (isList(buffers)) return inPlace(group, 'broadcast', buffers, access, operationOf);
  return group.accept(operationOf(asBuffer(buffers, 'broadcast'), group.seq, 0));
}
