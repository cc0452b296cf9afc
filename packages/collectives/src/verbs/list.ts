// Converts arguments that are lists of buffers to views, and checks them.

import { type Failure, listDtypesDiffer, listOnDevice, wrongListLength } from '../errors.ts';
import type { Admission } from '../group/admission.ts';
import { asBuffer, type BufferLike, type BufferView } from '../group/buffer.ts';
import type { Buffers } from '../options/options.ts';

export function isList(buffers: Buffers): buffers is readonly BufferLike[] {
  return Array.isArray(buffers);
}

/**
 * Returns views of a list's members. If the list is an array of numbers, throws the error for a plain array.
 */
export function viewsOf(list: readonly BufferLike[], verb: string): BufferView[] {
  if (list.some((member) => typeof member === 'number')) asBuffer(list as never, verb);
  return list.map((member) => asBuffer(member, verb));
}

/** Returns views of a list with one part for each rank. Throws if they cannot be packed into one buffer. */
export function listOf(
  group: Admission,
  verb: string,
  side: 'input' | 'output',
  list: readonly BufferLike[],
): BufferView[] {
  const members = viewsOf(list, verb);
  const fault = listFault(group.size, verb, side, members);
  if (fault !== null) throw group.error(fault);
  return members;
}

function listFault(
  size: number,
  verb: string,
  side: 'input' | 'output',
  members: readonly BufferView[],
): Failure | null {
  if (members.length !== size) return wrongListLength(verb, side, size, members.length);
  if (members.some(({ host }) => host === null)) return listOnDevice(verb, side);
  const dtypes = new Set(members.map(({ dtype }) => dtype));
  return dtypes.size > 1 ? listDtypesDiffer(verb, side, [...dtypes]) : null;
}
