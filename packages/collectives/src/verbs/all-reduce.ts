// allReduce, in place on one buffer per rank or on a list of buffers.
import type { AllReduce } from '../backend.ts';
import { reproducibleList, reproducibleWire, residualOfList, residualUnused } from '../errors.ts';
import type { Admission } from '../group/admission.ts';
import { asBuffer } from '../group/buffer.ts';
import type { Call } from '../group/steps.ts';
import { checkReduceOptions } from '../options/known-options.ts';
import type { AllReduceOptions, Buffers } from '../options/options.ts';
import { defaultFactor } from '../reduce-ops.ts';
import { inPlace } from './in-place.ts';
import { isList } from './list.ts';
import { isOneOperation, isReproducible, reproducibleReduce } from './reproducible.ts';

export function allReduce(group: Admission, buffers: Buffers, options: AllReduceOptions): Call<void> {
  checkReduceOptions(group, 'allReduce', options);
  const { timeoutMs = group.timeoutMs, label, op = 'sum', wire = 'full' } = options;
  const factor = options.factor ?? defaultFactor(op);
  if (!isList(buffers)) {
    const buffer = asBuffer(buffers, 'allReduce');
    const { seq } = group;
    const residual = options.residual === undefined ? null : asBuffer(options.residual, 'allReduce');
    if (isReproducible(options)) {
      if (wire !== 'full') throw group.error(reproducibleWire('allReduce', wire));
      if (residual !== null) throw group.error(residualUnused('allReduce', wire));
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
      reproducible: isOneOperation(group, 'allReduce', options),
    };
    return isReproducible(options) ? reproducibleReduce(group, plain, options) : group.accept(plain);
  }
  if (isReproducible(options)) throw group.error(reproducibleList('allReduce'));
  if (options.residual !== undefined) throw group.error(residualOfList('allReduce'));
  return inPlace(
    group,
    'allReduce',
    buffers,
    { isRead: true, isWritten: true },
    (buffer, seq, packing): AllReduce => {
      return {
        verb: 'allReduce',
        seq,
        timeoutMs,
        packing,
        label,
        buffer,
        op,
        factor,
        wire,
        residual: null,
        reproducible: false,
      };
    },
  );
}
