// The checks that `Admission` makes before a backend sees an operation. The functions named after a fault return
// the failure to report, or null, and do not throw. They build no text while the arguments are right, because
// every call passes through them.

import type { Verb } from '../all-verbs.ts';
import type { AllReduce, AllToAll, Operation, Supports } from '../backend.ts';
import { inputFirst } from '../errors/collective-error.ts';
import {
  badCounts,
  badLabel,
  badRank,
  buffersOverlap,
  deviceNotSupported,
  devicesDiffer,
  dtypesDiffer,
  type Failure,
  factorMissing,
  factorUnused,
  noOtherRank,
  notDivisible,
  oneOfCounts,
  opNotDefined,
  ownCountsDiffer,
  residualOverlaps,
  residualUnused,
  rootOnly,
  selfPeer,
  unknownWire,
  verbNotSupported,
  wireUnused,
  wrongCount,
  wrongResidual,
} from '../errors.ts';
import { badTimeout, isTimeout, shown, unknownOp } from '../options/errors.ts';
import type { ReduceOp } from '../reduce-ops.ts';
import { reduceOps } from '../reduce-ops.ts';
import type { BufferView } from './buffer.ts';
import { overlap } from './overlap.ts';

/** The members of a group that the checks read. */
export interface Checked {
  readonly rank: number;
  readonly size: number;
  readonly backend: string;
  readonly supports: Supports;
}

/** Returns the first fault of an operation, or null. Its buffers are already BufferViews. */
export function faultOf(group: Checked, operation: Operation): Failure | null {
  const { verb, timeoutMs } = operation;
  if (!group.supports.verbs.includes(verb)) {
    if (group.size === 1 && (verb === 'send' || verb === 'recv')) return noOtherRank(verb);
    return verbNotSupported(verb, group.backend, group.supports.verbs);
  }
  if (!isTimeout(timeoutMs)) return badTimeout(verb, timeoutMs);
  const { label } = operation as { readonly label?: unknown };
  if (label !== undefined && (typeof label !== 'string' || label === '')) return badLabel(verb, shown(label));
  switch (operation.verb) {
    case 'allReduce':
      return (
        deviceFault(group, verb, operation.buffer) ??
        reduceFault(group, verb, operation.op, operation.factor, operation.buffer) ??
        wireFault(group, operation)
      );
    case 'reduce':
      return (
        deviceFault(group, verb, operation.buffer) ??
        rankFault(group, verb, 'root', operation.root) ??
        reduceFault(group, verb, operation.op, operation.factor, operation.buffer)
      );
    case 'broadcast':
      return deviceFault(group, verb, operation.buffer) ?? rankFault(group, verb, 'root', operation.root);
    case 'allGather':
      return partsFault(group, verb, operation.input, operation.output, 'output', operation.counts);
    case 'gather':
      return (
        rankFault(group, verb, 'root', operation.root) ??
        rootFault(group, verb, 'output', operation.root, operation.output) ??
        partsFault(group, verb, operation.input, operation.output, 'output', operation.counts)
      );
    case 'scatter':
      return (
        rankFault(group, verb, 'root', operation.root) ??
        rootFault(group, verb, 'input', operation.root, operation.input) ??
        partsFault(group, verb, operation.output, operation.input, 'input', operation.counts)
      );
    case 'reduceScatter':
      return (
        partsFault(group, verb, operation.output, operation.input, 'input', operation.counts) ??
        reduceFault(group, verb, operation.op, operation.factor, operation.input)
      );
    case 'allToAll':
      return allToAllFault(group, operation);
    case 'send':
    case 'recv':
      return (
        deviceFault(group, verb, operation.buffer) ??
        (verb === 'recv' && operation.peer === -1 ? null : rankFault(group, verb, 'peer', operation.peer)) ??
        (operation.peer === group.rank ? selfPeer(verb, group.rank) : null)
      );
    case 'barrier':
      return null;
  }
}

/** `factor` is NaN if op 'premulSum' was given none. */
function reduceFault(
  { supports }: Checked,
  verb: Verb,
  op: ReduceOp,
  factor: number,
  { dtype, device }: BufferView,
): Failure | null {
  if (!supports.reduces(op, dtype, device.kind)) {
    if (!reduceOps.includes(op)) return unknownOp(verb, op, reduceOps);
    return opNotDefined(
      verb,
      op,
      dtype,
      reduceOps.filter((other) => supports.reduces(other, dtype, device.kind)),
    );
  }
  if (op === 'premulSum') {
    if (typeof factor !== 'number') return factorMissing(verb, shown(factor));
    return Number.isNaN(factor) ? factorMissing(verb, 'none, or NaN') : null; // NaN is the default of premulSum
  }
  return factor === 1 ? null : factorUnused(verb, op);
}

function wireFault(group: Checked, { verb, wire, op, buffer, residual }: AllReduce): Failure | null {
  if (wire !== 'full') {
    if (wire !== 'bfloat16' && wire !== 'int8') return unknownWire(verb, String(wire));
    const fits = buffer.dtype === 'float32' && (op === 'sum' || op === 'avg');
    if (!fits) return wireUnused(verb, wire, op, buffer.dtype);
  }
  if (residual === null) return null;
  if (wire !== 'int8') return residualUnused(verb, wire);
  if (residual.dtype !== 'float32' || residual.count !== buffer.count)
    return wrongResidual(verb, buffer.count, residual.count, residual.dtype);
  return deviceFault(group, verb, residual) ?? (overlap(buffer, residual) ? residualOverlaps(verb) : null);
}

function deviceFault({ supports, backend }: Checked, verb: Verb, { device }: BufferView): Failure | null {
  const { devices } = supports;
  if (devices[0] === device.kind || devices.includes(device.kind)) return null;
  return deviceNotSupported(verb, backend, `${device.kind}:${device.index}`, devices.join(', '));
}

/** `verb` may also be a call of several operations. */
export function rankFault(
  { size }: Pick<Checked, 'size'>,
  verb: string,
  name: 'root' | 'peer',
  value: number,
): Failure | null {
  if (name === 'peer' && size === 1) return noOtherRank(verb);
  if (Number.isInteger(value) && value >= 0 && value < size) return null;
  return badRank(verb, name, shown(value), size);
}

function rootFault(
  { rank }: Checked,
  verb: Verb,
  side: 'input' | 'output',
  root: number,
  whole: BufferView | null,
): Failure | null {
  return (whole !== null) === (rank === root) ? null : rootOnly(verb, side, root, rank === root);
}

/**
 * Checks this rank's part, and the buffer of all parts if this rank has it. `side` is the caller's name for
 * the latter.
 */
function partsFault(
  group: Checked,
  verb: Verb,
  part: BufferView,
  whole: BufferView | null,
  side: 'input' | 'output',
  counts: readonly number[] | null,
): Failure | null {
  const otherSide = side === 'output' ? 'input' : 'output';
  const fault = deviceFault(group, verb, part) ?? countsFault(group, verb, 'counts', counts);
  if (fault !== null) return fault;
  if (counts !== null && part.count !== counts[group.rank])
    return wrongCount(verb, otherSide, counts[group.rank] as number, part.count);
  if (whole === null) return null;
  const [input, output] = side === 'output' ? [part, whole] : [whole, part];
  const expected = counts === null ? group.size * part.count : sum(counts);
  const fit = pairFault(group, verb, input, output);
  if (fit !== null || whole.count === expected) return fit;
  const isTurned = counts === null && part.count === group.size * whole.count;
  return wrongCount(verb, side, expected, whole.count, isTurned ? inputFirst(verb) : undefined);
}

function allToAllFault(group: Checked, operation: AllToAll): Failure | null {
  const { verb, input, output, sendCounts, recvCounts } = operation;
  const fault = pairFault(group, verb, input, output);
  if (fault !== null) return fault;
  if (sendCounts === null && recvCounts === null) {
    if (input.count !== output.count) return wrongCount(verb, 'output', input.count, output.count);
    return input.count % group.size === 0 ? null : notDivisible(verb, input.count, group.size);
  }
  if (sendCounts === null || recvCounts === null) return oneOfCounts(verb);
  const badCounts =
    countsFault(group, verb, 'sendCounts', sendCounts) ?? countsFault(group, verb, 'recvCounts', recvCounts);
  if (badCounts !== null) return badCounts;
  if (input.count !== sum(sendCounts)) return wrongCount(verb, 'input', sum(sendCounts), input.count);
  if (output.count !== sum(recvCounts)) return wrongCount(verb, 'output', sum(recvCounts), output.count);
  const [sends, receives] = [sendCounts[group.rank] as number, recvCounts[group.rank] as number];
  return sends === receives ? null : ownCountsDiffer(verb, group.rank, sends, receives);
}

export function countsFault(
  { size }: Pick<Checked, 'size'>,
  verb: Verb,
  name: string,
  counts: readonly number[] | null,
): Failure | null {
  if (counts === null) return null;
  const isList = Array.isArray(counts) || ArrayBuffer.isView(counts);
  if (isList && counts.length === size && areCounts(counts)) return null;
  return badCounts(verb, name, size, shown(isList ? [...counts] : counts));
}

/** Returns whether all entries are counts. A hole of a sparse array is none; every() would skip it. */
function areCounts(counts: readonly number[]): boolean {
  for (let rank = 0; rank < counts.length; rank++) {
    const count = counts[rank];
    if (!(Number.isSafeInteger(count) && (count as number) >= 0)) return false;
  }
  return true;
}

/**
 * Checks the two buffers of one operation: their device, their dtypes, overlap. Both must be on one device, because a
 * backend runs an operation where its memory is.
 */
function pairFault(group: Checked, verb: Verb, input: BufferView, output: BufferView): Failure | null {
  const fault = deviceFault(group, verb, input) ?? deviceFault(group, verb, output);
  if (fault !== null) return fault;
  if (!areTogether(input, output)) return devicesDiffer(verb, nameOf(input), nameOf(output));
  if (input.dtype !== output.dtype) return dtypesDiffer(verb, input.dtype, output.dtype);
  return overlap(input, output) ? buffersOverlap(verb) : null;
}

/** Returns whether two buffers are on one device. All host memory is. */
function areTogether({ device: a }: BufferView, { device: b }: BufferView): boolean {
  return a.kind === b.kind && (a.index === b.index || a.kind === 'cpu');
}

const nameOf = ({ device: { kind, index } }: BufferView): string =>
  kind === 'cpu' ? 'the host' : `${kind}:${index}`;

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
