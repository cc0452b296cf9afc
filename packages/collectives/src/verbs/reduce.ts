// reduce, in place on one buffer per rank or on a list of buffers.
import type { Reduce } from '../backend.ts';
import { reproducibleList } from '../errors.ts';
import type { Admission } from '../group/admission.ts';
import { asBuffer, type BufferView } from '../group/buffer.ts';
import type { Call } from '../group/steps.ts';
import { checkReduceOptions } from '../options/known-options.ts';
import type { Buffers, ReduceOptions, RootOptions } from '../options/options.ts';
import { defaultFactor } from '../reduce-ops.ts';
import { inPlace } from './in-place.ts';
import { isList } from './list.ts';
import { isOneOperation, isReproducible, reproducibleReduce } from './reproducible.ts';

export function reduce(group: Admission, buffers: Buffers, options: ReduceOptions & RootOptions): Call<void> {
  checkReduceOptions(group, 'reduce', options);
  const { timeoutMs = group.timeoutMs, label, op = 'sum', root = 0 } = options;
  const factor = options.factor ?? defaultFactor(op);
  const reproducible = isOneOperation(group, 'reduce', options);
  const operationOf = (buffer: BufferView, seq: number, packing: number): Reduce => {
    return { verb: 'reduce', seq, timeoutMs, packing, label, buffer, op, factor, root, reproducible };
  };
  if (!isList(buffers)) {
    const plain = operationOf(asBuffer(buffers, 'reduce'), group.seq, 0);
    return isReproducible(options) ? reproducibleReduce(group, plain, options) : group.accept(plain);
  }
  if (isReproducible(options)) throw group.error(reproducibleList('reduce'));
  const access = { isRead: true, isWritten: root === group.rank };
  return inPlace(group, 'reduce', buffers, access, operationOf);
}
