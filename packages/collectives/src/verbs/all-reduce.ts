// allReduce, in place on one buffer per rank or on a list of buffers.
import type { AllReduce } from '../backend.ts';
import { reproducibleList, reproducibleWire, residualOfList, residualUnused } from '../errors.ts';
import { asBuffer } from '../group/buffer.ts';
import type { Calls } from '../group/calls.ts';
import type { Call } from '../group/steps.ts';
import { checkReduceOptions } from '../options/known-options.ts';
import type { AllReduceOptions, Buffers } from '../options/options.ts';
import { defaultFactor } from '../reduce-ops.ts';
import { inPlace } from './in-place.ts';
import { isList } from './list.ts';
import { isReproducible, reproducibleReduce } from './reproducible.ts';

export function allReduce(calls: Calls, buffers: Buffers, options: AllReduceOptions): Call<void> {
  checkReduceOptions(calls, 'allReduce', options);
  const { timeoutMs = calls.timeoutMs, label, op = 'sum', wire = 'full' } = options;
  const factor = options.factor ?? defaultFactor(op);
  if (!isList(buffers)) {
    const buffer = asBuffer(buffers, 'allReduce');
    const { seq } = calls;
    const residual = options.residual === undefined ? null : asBuffer(options.residual, 'allReduce');
    if (isReproducible(options)) {
      if (wire !== 'full') throw calls.error(reproducibleWire('allReduce', wire));
      if (residual !== null) throw calls.error(residualUnused('allReduce', wire));
    }
    const plain: AllReduce = {
      verb: 'allReduce',
      seq,
      timeoutMs,
      packing: 0,
      label,
      buffer,
      op,
      factor,
      wire,
      residual,
    };
    return isReproducible(options) ? reproducibleReduce(calls, plain, options) : calls.accept(plain);
  }
  if (isReproducible(options)) throw calls.error(reproducibleList('allReduce'));
  if (options.residual !== undefined) throw calls.error(residualOfList('allReduce'));
  return inPlace(
    calls,
    'allReduce',
    buffers,
    { isRead: true, isWritten: true },
    (buffer, seq, packing): AllReduce => {
      return { verb: 'allReduce', seq, timeoutMs, packing, label, buffer, op, factor, wire, residual: null };
    },
  );
}
