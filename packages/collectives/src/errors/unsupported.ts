// Failures of calls that a backend, or this kind of group, cannot do.
import type { DType } from '../dtype.ts';
import type { ReduceOp } from '../reduce-ops.ts';
import { type Failure, invalid, local, unsupported } from './collective-error.ts';

export function noSubgroups(verb: string): Failure {
  return local(
    'ERR_COLL_UNSUPPORTED',
    verb,
    'this group cannot have subgroups; it was made without the `subgroups` option',
    'Groups of init() and loopbackGroups() can.',
  );
}

/** Failure if there is no memory of this size. `why` is the text of the system or of JavaScript. */
export function noMemory(backend: string, count: number, dtype: DType, why: string): Failure {
  return unsupported(
    'alloc',
    `the ${backend} backend has no memory for ${count} × ${dtype}: ${why}`,
    'Allocate less at a time, or pass typed arrays of your own.',
  );
}

/** Failure for a buffer of more bytes than a Uint8Array of this version of Node can have. */
export function bufferTooLarge(verb: string, backend: string, bytes: number, most: number): Failure {
  return unsupported(
    verb,
    `the ${backend} backend cannot send a buffer of ${bytes} bytes; expected at most ${most} in this version of Node`,
    "Divide it over several calls, or use the backend 'host'.",
  );
}

export function noSurvivors(): Failure {
  return unsupported(
    'shrink',
    'this group has no store in which its ranks could meet; groups of init() have one',
  );
}

/** `instead` is the sentence that says how to get the next group. */
export function notByShrink(instead: string): Failure {
  return unsupported('shrink', 'the members of an elastic job agree on their next group themselves', instead);
}

export function lostRanksUnknown(got: string): Failure {
  const next = 'Name the ranks to leave out in `without`; by default they are those that the failure names.';
  return invalid(
    'shrink',
    `it cannot tell which ranks are lost; expected ranks of the group, got ${got}`,
    next,
  );
}

export function notCapturable(verb: string, why: string): Failure {
  return unsupported(
    verb,
    `it cannot be part of a step that is being captured: ${why}; expected a collective on memory of that step's device, by the nccl backend`,
    'Call it before or after the step.',
  );
}

export function notReproducible(verb: string, op: ReduceOp, dtype: DType, known: readonly DType[]): Failure {
  return unsupported(
    verb,
    `there is no reproducible '${op}' of ${dtype}; expected 'sum' or 'avg' of ${known.join(', ')}`,
    'Integers, and min and max, have the same bits in any order anyway.',
  );
}

export function reproducibleOnDevice(verb: string): Failure {
  return unsupported(verb, 'a reproducible reduction needs memory that JavaScript can access');
}

export function tooManyAddends(verb: string, got: number, max: number): Failure {
  return unsupported(verb, `too many addends for a reproducible sum; expected at most ${max}, got ${got}`);
}

export function verbNotSupported(verb: string, backend: string, verbs: readonly string[]): Failure {
  return unsupported(verb, `the ${backend} backend does not have it`, `It has: ${verbs.join(', ')}.`);
}

/** Failure for a message in a group of one rank. */
export function noOtherRank(verb: string): Failure {
  return unsupported(
    verb,
    'a group of one rank has no other rank to exchange messages with',
    'Start several ranks, as with `npx ringwise run --nproc-per-node 2`, or leave the call out where group.size is 1.',
  );
}

export function deviceNotSupported(verb: string, backend: string, got: string, devices: string): Failure {
  return unsupported(
    verb,
    `the ${backend} backend cannot reach ${got} memory; expected ${devices}`,
    'Copy it to such memory first, or use a backend that can access it.',
  );
}

export function elementsOnDevice(got: string): Failure {
  return unsupported(
    'elementsOf',
    `expected memory that JavaScript can access, got that of ${got}`,
    'Give one buffer in the place of a list of parts, or copy to host memory first.',
  );
}

export function cannotBlock(verb: string, backend: string): Failure {
  return unsupported(
    verb,
    `the ${backend} backend may not block this thread`,
    'Await the asynchronous form.',
  );
}

export function memoryNotVisible(backend: string): Failure {
  return unsupported('alloc', `memory of the ${backend} backend is not visible to JavaScript`);
}

export function tooLongForMpi(verb: string, count: number): Failure {
  return unsupported(
    verb,
    `${count} elements in parts are too many for MPI; expected at most 2147483647 for all ranks together`,
    'Call it on pieces.',
  );
}
