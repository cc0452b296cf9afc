// broadcast, in place on one buffer per rank or on a list of buffers.
import type { Broadcast } from '../backend.ts';
import { asBuffer, type BufferView } from '../group/buffer.ts';
import type { Calls } from '../group/calls.ts';
import type { Call } from '../group/steps.ts';
import { checkOptions } from '../options/known-options.ts';
import type { Buffers, RootOptions } from '../options/options.ts';
import { inPlace } from './in-place.ts';
import { isList } from './list.ts';

export function broadcast(calls: Calls, buffers: Buffers, options: RootOptions): Call<void> {
  checkOptions(calls, 'broadcast', options);
  const { timeoutMs = calls.timeoutMs, label, root = 0 } = options;
  const operationOf = (buffer: BufferView, seq: number, packing: number): Broadcast => {
    return { verb: 'broadcast', seq, timeoutMs, packing, label, buffer, root };
  };
  const access = { isRead: root === calls.rank, isWritten: root !== calls.rank };
  if (isList(buffers)) return inPlace(calls, 'broadcast', buffers, access, operationOf);
  return calls.accept(operationOf(asBuffer(buffers, 'broadcast'), calls.seq, 0));
}
