// allReduce, reduce and broadcast, in place on one buffer per rank or a list of buffers; and barrier.
import type { AllReduce, Barrier, Broadcast, Reduce } from '../backend.ts';
import { reproducibleList, reproducibleWire, residualOfList, residualUnused } from '../errors.ts';
import { asBuffer, type BufferView } from '../group/buffer.ts';
import type { Calls } from '../group/calls.ts';
import type { Call } from '../group/steps.ts';
import { checkOptions, checkReduceOptions } from '../options/known-options.ts';
import type {
  AllReduceOptions,
  Buffers,
  CollectiveOptions,
  ReduceOptions,
  RootOptions,
} from '../options/options.ts';
import type { ReduceOp } from '../reduce-ops.ts';
import { bundled } from './bundle.ts';
import { isList, viewsOf } from './list.ts';
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

export function barrier(calls: Calls, options: CollectiveOptions): Barrier {
  checkOptions(calls, 'barrier', options);
  const { timeoutMs = calls.timeoutMs, label } = options;
  return calls.accept({ verb: 'barrier', seq: calls.seq, timeoutMs, packing: 0, label });
}

/** Returns the factor if the caller gave none: NaN if the op needs one; see check.ts. */
export function defaultFactor(op: ReduceOp): number {
  return op === 'premulSum' ? Number.NaN : 1;
}

function inPlace<O extends AllReduce | Reduce | Broadcast>(
  calls: Calls,
  verb: O['verb'],
  buffers: Parameters<typeof viewsOf>[0],
  access: { readonly isRead: boolean; readonly isWritten: boolean },
  operationOf: (buffer: BufferView, seq: number, packing: number) => O,
): Call<void> {
  const views = viewsOf(buffers, verb);
  return bundled(calls, verb, views, [{ views, blocks: 1, ...access }], ([buffer], seq, packing) =>
    operationOf(buffer as BufferView, seq, packing),
  );
}
