// Failures of wrong arguments, which only this rank reports. They do not make later calls fail if they are thrown
// before anything is sent, or from the steps of a call (see group/runner.ts).
import type { DType } from '../dtype.ts';
import type { ReduceOp } from '../reduce-ops.ts';
import { type Failure, invalid, local, withoutStop } from './collective-error.ts';

const accepted =
  'a typed array, { data, dtype } for float16, bfloat16, floats of 8 bits and bool, or an object with a Symbol.for("ringwise.buffer") member';

export function notABuffer(verb: string, got: string, next?: string): Failure {
  return invalid(verb, `cannot use ${got} as a buffer; expected ${accepted}`, next);
}

export function detachedBuffer(verb: string): Failure {
  return invalid(verb, 'the buffer is detached', 'Its memory was transferred to another thread or freed.');
}

/** Failure for memory that the program could shrink while a call uses it. */
export function resizableBuffer(verb: string): Failure {
  return invalid(
    verb,
    'the buffer is in a resizable ArrayBuffer; expected memory of a fixed length',
    'Pass a copy, such as array.slice(), or make the ArrayBuffer without maxByteLength.',
  );
}

export function unknownDtype(verb: string, got: string, known: readonly DType[]): Failure {
  return invalid(verb, `unknown dtype ${got}; expected one of ${known.join(', ')}`);
}

export function wrongArrayType(verb: string, dtype: DType, expected: string, got: string): Failure {
  return invalid(verb, `data does not hold ${dtype}; expected ${expected}, got ${got}`);
}

export function badCarrier(verb: string, fault: string): Failure {
  return invalid(verb, `the object's "ringwise.buffer" member returned no valid BufferView: ${fault}`);
}

/** Failure for a buffer whose owner does not allow writes now. */
export function notWritable(verb: string, reason: string, next?: string): Failure {
  return invalid(verb, `it must not write this buffer: ${withoutStop(reason)}`, next);
}

export function opNotDefined(
  verb: string,
  op: ReduceOp,
  dtype: DType,
  supported: readonly ReduceOp[],
): Failure {
  const instead = op === 'avg' && supported.includes('sum') ? "; use 'sum' and divide" : '';
  const list = supported.length === 0 ? 'none' : supported.join(', ');
  return local(
    'ERR_COLL_UNSUPPORTED',
    verb,
    `'${op}' is not defined for ${dtype}${instead}`,
    `Supported on ${dtype}: ${list}.`,
  );
}

export function factorMissing(verb: string, got: string): Failure {
  return invalid(verb, `op 'premulSum' needs this rank's factor; expected a number, got ${got}`);
}

export function factorUnused(verb: string, op: ReduceOp): Failure {
  return invalid(verb, `'factor' has no meaning for op '${op}'; it belongs to 'premulSum'`);
}

export function unknownWire(verb: string, got: string): Failure {
  return invalid(verb, `there is no wire '${got}'; expected 'full', 'bfloat16' or 'int8'`);
}

export function wireUnused(verb: string, wire: string, op: ReduceOp, dtype: string): Failure {
  return invalid(verb, `wire '${wire}' is for sum and avg of float32, got ${op} of ${dtype}`);
}

export function residualUnused(verb: string, wire: string): Failure {
  return invalid(
    verb,
    `a residual holds the rounding errors of wire 'int8'; expected that wire, got '${wire}'`,
  );
}

export function wrongResidual(verb: string, expected: number, got: number, dtype: DType): Failure {
  return invalid(
    verb,
    `the residual does not fit the buffer; expected ${expected} × float32, got ${got} × ${dtype}`,
  );
}

export function residualOverlaps(verb: string): Failure {
  return invalid(
    verb,
    'the residual shares memory with the buffer; expected memory of its own',
    'Keep a Float32Array of zeros for each buffer.',
  );
}

export function badRank(verb: string, name: 'root' | 'peer', got: string, size: number): Failure {
  return invalid(verb, `${name} is not a rank of the group; expected 0 to ${size - 1}, got ${got}`);
}

export function selfPeer(verb: string, rank: number): Failure {
  return invalid(verb, `rank ${rank} is this rank itself; expected another one`, 'Copy the memory instead.');
}

export function dtypesDiffer(verb: string, input: DType, output: DType): Failure {
  return invalid(verb, `input and output differ in dtype; expected ${input} for both, output is ${output}`);
}

export type Side = 'input' | 'output';

export function wrongCount(verb: string, side: Side, expected: number, got: number, next?: string): Failure {
  return invalid(verb, `${side} has the wrong length; expected ${expected} elements, got ${got}`, next);
}

export function notDivisible(verb: string, count: number, size: number): Failure {
  return invalid(
    verb,
    `${count} elements cannot be split evenly; expected a multiple of ${size}`,
    'Pass sendCounts and recvCounts for parts of different lengths.',
  );
}

export function badCounts(verb: string, name: string, size: number, got: string): Failure {
  return invalid(verb, `${name} is not usable; expected a length for each of ${size} ranks, got ${got}`);
}

export function oneOfCounts(verb: string): Failure {
  return invalid(verb, 'of sendCounts and recvCounts only one is given; expected both or neither');
}

export function ownCountsDiffer(verb: string, rank: number, sends: number, receives: number): Failure {
  return invalid(
    verb,
    `counts differ for rank ${rank} itself; it sends ${sends} elements and expects ${receives}`,
  );
}

export function rootOnly(verb: string, side: Side, root: number, isRoot: boolean): Failure {
  const what = isRoot ? `the root needs an ${side}` : `only the root, rank ${root}, has an ${side}`;
  return invalid(verb, `${what}; expected ${isRoot ? 'a buffer, got null' : 'null, got a buffer'}`);
}

export function reproducibleWire(verb: string, wire: string): Failure {
  return invalid(
    verb,
    `reproducible sums travel as integers; expected no wire, got '${wire}'`,
    'Leave one of the two out.',
  );
}

export function badColor(got: string): Failure {
  return invalid('split', `color is not usable; expected a whole number, or null for no group, got ${got}`);
}

export function badKey(got: string): Failure {
  return invalid('split', `key is not usable; expected a number, got ${got}`);
}

export function badMembers(size: number, got: string): Failure {
  return invalid(
    'subgroup',
    `the list of ranks is not usable; expected different ranks from 0 to ${size - 1}, got ${got}`,
  );
}

/** Failure if the two buffers of one operation are on different devices, or one is on the host. */
export function devicesDiffer(verb: string, input: string, output: string): Failure {
  return invalid(
    verb,
    `input and output are on different devices; expected one for both, input is on ${input}, output on ${output}`,
    'Copy one of them to the other device first.',
  );
}

export function buffersOverlap(verb: string): Failure {
  return invalid(
    verb,
    'input and output share memory; expected two separate buffers',
    'Copy the input first.',
  );
}

export function badLabel(verb: string, got: string): Failure {
  return invalid(verb, `label is not usable; expected a string that is not empty, got ${got}`);
}

export function badAllocCount(got: string): Failure {
  return invalid('alloc', `count is not usable; expected a whole number of elements, got ${got}`);
}

export function backendNameTaken(name: string): Failure {
  return invalid('registerBackend', `there is a backend named '${name}' already; expected a new name`);
}
