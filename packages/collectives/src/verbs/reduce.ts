// reduce, in place on one buffer per rank or on a list of buffers.
import type { Reduce } from '../backend.ts';
import { reproducibleList } from '../errors.ts';
import { asBuffer, type BufferView } from '../group/buffer.ts';
import type { Calls } from '../group/calls.ts';
import type { Call } from '../group/steps.ts';
import { checkReduceOptions } from '../options/known-options.ts';
import type { Buffers, ReduceOptions, RootOptions } from '../options/options.ts';
import { defaultFactor } from '../reduce-ops.ts';
import { inPlace } from './in-place.ts';
import { isList } from './list.ts';
import { isReproducible, reproducibleReduce } from './reproducible.ts';

export function reduce(calls: Calls, buffers: Buffers, options: ReduceOptions & RootOptions): Call<void> {
  checkReduceOptions(calls, 'reduce', options);
  const { timeoutMs = calls.timeoutMs, label, op = 'sum', root = 0 } = options;
  const factor = options.factor ?? defaultFactor(op);
  const operationOf = (buffer: BufferView, seq: number, packing: number): Reduce => {
    return { verb: 'reduce', seq, timeoutMs, packing, label, buffer, op, factor, root };
  };
  if (!isList(buffers)) {
    const plain = operationOf(asBuffer(buffers, 'reduce'), calls.seq, 0);
    return isReproducible(options) ? reproducibleReduce(calls, plain, options) : calls.accept(plain);
  }
  if (isReproducible(options)) throw calls.error(reproducibleList('reduce'));
  const access = { isRead: true, isWritten: root === calls.rank };
  return inPlace(calls, 'reduce', buffers, access, operationOf);
}
