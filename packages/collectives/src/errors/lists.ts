// Failures of arguments that are lists of buffers.
import type { DType } from '../dtype.ts';
import type { Side } from './arguments.ts';
import { type Failure, inputFirst, invalid } from './collective-error.ts';

export function residualOfList(verb: string): Failure {
  return invalid(verb, 'a residual belongs to one buffer; expected no list', 'Call once for each buffer.');
}

export function wrongListLength(verb: string, side: Side, size: number, got: number): Failure {
  return invalid(
    verb,
    `${side} is a list of the wrong length; expected a part for each of ${size} ranks, got ${got}`,
  );
}

export function wrongListPart(
  verb: string,
  side: Side,
  rank: number,
  expected: number,
  got: number,
): Failure {
  return invalid(
    verb,
    `${side} has the wrong length for rank ${rank}; expected ${expected} elements, got ${got}`,
    'Where parts differ, pass the same `counts` on all ranks.',
  );
}

export function listLengthsDiffer(verb: string, expected: number, got: number): Failure {
  return invalid(
    verb,
    `input and output are lists of different lengths; expected ${expected} buffers, got ${got}`,
  );
}

export function listDtypesDiffer(verb: string, side: Side, got: readonly DType[]): Failure {
  return invalid(verb, `the parts of ${side} differ in dtype; expected one for all, got ${got.join(', ')}`);
}

export function listOnDevice(verb: string, side: Side): Failure {
  return invalid(
    verb,
    `${side} is a list of memory that JavaScript cannot access; expected one buffer`,
    'Only host memory can be copied to and from a list.',
  );
}

export function oneList(verb: string): Failure {
  return invalid(verb, 'of input and output only one is a list; expected two lists or two buffers');
}

/** Failure for a list on the side that has one part of each rank, and one buffer on the other side. */
export function listAndBuffer(verb: string, listed: Side, size: number): Failure {
  const other = listed === 'input' ? 'output' : 'input';
  const what = `${listed} is a list and ${other} is one buffer; expected one buffer as ${listed} and ${size} parts as ${other}, or two lists`;
  return invalid(verb, what, inputFirst(verb));
}

export function countsOfLists(verb: string): Failure {
  return invalid(
    verb,
    'lists and counts are both given; expected one of them: lists have lengths of their own',
  );
}

export function countsOfMany(verb: string): Failure {
  return invalid(
    verb,
    "'counts' has no meaning for many buffers in one call; expected one input and one output",
  );
}

export function reproducibleList(verb: string): Failure {
  return invalid(
    verb,
    'a reproducible reduction has one buffer; expected no list',
    'Its bits do not depend on the cuts: one call for each buffer gives the same.',
  );
}

export function contributionsNotReproducible(verb: string): Failure {
  return invalid(
    verb,
    'contributions are always added reproducibly; expected reproducible: true or no such option, got false',
    'Without contributions, add the buffers of this rank before the call.',
  );
}

export function listOverlaps(verb: string, first: string, second: string): Failure {
  return invalid(
    verb,
    `${first} and ${second} share memory that the call writes; expected separate buffers`,
    'Pass each buffer once, or a copy.',
  );
}
