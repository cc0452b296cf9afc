// What `Group` checks before a backend sees an operation. Each function returns the failure to report, or null:
// nothing is thrown here and nothing allocated while the arguments are right, because every call passes by.
import type { Operation, ReduceOp, Supports, Verb } from './backend.ts';
import type { BufferView } from './buffer.ts';
import {
  badRank,
  badTimeout,
  buffersOverlap,
  deviceNotSupported,
  dtypesDiffer,
  type Failure,
  factorMissing,
  factorUnused,
  opNotDefined,
  selfPeer,
  unknownOp,
  verbNotSupported,
  wrongCount,
} from './errors.ts';
import { reduceOps } from './reduce-ops.ts';

/** The part of a group that the checks look at. */
export interface Checked {
  readonly rank: number;
  readonly size: number;
  readonly backend: string;
  readonly supports: Supports;
}

/** The first fault of an operation whose memory is known already. */
export function faultOf(group: Checked, operation: Operation): Failure | null {
  const { verb, timeoutMs } = operation;
  if (!group.supports.verbs.includes(verb))
    return verbNotSupported(verb, group.backend, group.supports.verbs);
  if (!(timeoutMs >= 1 && timeoutMs <= 0x7fffffff)) return badTimeout(verb, String(timeoutMs));
  switch (operation.verb) {
    case 'allReduce':
      return (
        deviceFault(group, verb, operation.buffer) ??
        reduceFault(group, verb, operation.op, operation.factor, operation.buffer)
      );
    case 'broadcast':
      return deviceFault(group, verb, operation.buffer) ?? rankFault(group, verb, 'root', operation.root);
    case 'allGather':
      return pairFault(group, verb, operation.input, operation.output, 'output');
    case 'reduceScatter':
      return (
        pairFault(group, verb, operation.output, operation.input, 'input') ??
        reduceFault(group, verb, operation.op, operation.factor, operation.input)
      );
    case 'send':
    case 'recv':
      return (
        deviceFault(group, verb, operation.buffer) ??
        rankFault(group, verb, 'peer', operation.peer) ??
        (operation.peer === group.rank ? selfPeer(verb, group.rank) : null)
      );
    case 'barrier':
      return null;
  }
}

/** `factor` is NaN where the caller gave none. */
function reduceFault(
  { supports }: Checked,
  verb: Verb,
  op: ReduceOp,
  factor: number,
  { dtype }: BufferView,
): Failure | null {
  if (!supports.reduces(op, dtype)) {
    if (!reduceOps.includes(op)) return unknownOp(verb, String(op), reduceOps);
    return opNotDefined(
      verb,
      op,
      dtype,
      reduceOps.filter((other) => supports.reduces(other, dtype)),
    );
  }
  if (op === 'premulSum') return Number.isNaN(Number(factor)) ? factorMissing(verb, String(factor)) : null;
  return factor === 1 ? null : factorUnused(verb, op);
}

function deviceFault({ supports, backend }: Checked, verb: Verb, { device }: BufferView): Failure | null {
  if (supports.devices.includes(device.kind)) return null;
  return deviceNotSupported(verb, backend, `${device.kind}:${device.index}`, supports.devices.join(', '));
}

function rankFault({ size }: Checked, verb: Verb, name: 'root' | 'peer', value: number): Failure | null {
  if (Number.isInteger(value) && value >= 0 && value < size) return null;
  return badRank(verb, name, String(value), size);
}

/** One buffer of a part and one of `size` parts; `larger` says what the caller calls the second. */
function pairFault(
  group: Checked,
  verb: Verb,
  part: BufferView,
  whole: BufferView,
  larger: 'input' | 'output',
): Failure | null {
  const fault = deviceFault(group, verb, part) ?? deviceFault(group, verb, whole);
  if (fault !== null) return fault;
  if (part.dtype !== whole.dtype) {
    return larger === 'output'
      ? dtypesDiffer(verb, part.dtype, whole.dtype)
      : dtypesDiffer(verb, whole.dtype, part.dtype);
  }
  const expected = group.size * part.count;
  if (whole.count !== expected) return wrongCount(verb, larger, expected, whole.count);
  return overlap(part, whole) ? buffersOverlap(verb) : null;
}

function overlap(a: BufferView, b: BufferView): boolean {
  if (a.count === 0 || b.count === 0) return false;
  if (a.host === null || b.host === null) return a.handle !== null && a.handle === b.handle;
  if (a.host.buffer !== b.host.buffer) return false;
  const aEnd = a.host.byteOffset + a.host.byteLength;
  const bEnd = b.host.byteOffset + b.host.byteLength;
  return a.host.byteOffset < bEnd && b.host.byteOffset < aEnd;
}
