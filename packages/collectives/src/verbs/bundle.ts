// Several buffers in one call. Small buffers of one dtype are packed into one operation, large buffers have
// one each, and all operations are started together. Which buffers are packed depends only on their lengths, dtypes
// and kinds of memory, so all ranks must agree on these.
import type { CollectiveOperation } from '../backend.ts';
import { listLengthsDiffer } from '../errors.ts';
import type { Admission } from '../group/admission.ts';
import type { BufferView } from '../group/buffer.ts';
import { allocPacked, bundlesOf, type Packed, pack, packingOf, unpack } from '../group/pack.ts';
import type { Steps } from '../group/steps.ts';

/**
 * The buffers that fill one member of the operation (such as its input) on this rank, one for each bundled
 * call.
 */
export interface Role {
  /** The name of the buffers in errors; the index of a buffer is appended. */
  readonly name: string;
  readonly views: readonly BufferView[];
  /** Number of parts in each buffer: 1, or one for each rank. */
  readonly blocks: number;
  readonly isRead: boolean;
  readonly isWritten: boolean;
}

/** Builds one operation. `views` has one buffer for each role. */
export type OperationOf = (
  views: readonly (BufferView | null)[],
  seq: number,
  packing: number,
) => CollectiveOperation;

/**
 * Returns the operations for many buffers. The lengths, dtypes and kinds of memory of `parts` decide which buffers
 * are packed together. A role is null if this rank has no such buffers.
 */
export function bundled(
  group: Admission,
  verb: string,
  parts: readonly BufferView[],
  roles: readonly (Role | null)[],
  operationOf: OperationOf,
): Steps<void> {
  for (const role of roles) {
    if (role !== null && role.views.length !== parts.length)
      throw group.error(listLengthsDiffer(verb, parts.length, role.views.length));
  }
  const viewsAt = (index: number) => roles.map((role) => role?.views[index] ?? null);
  for (const index of parts.keys()) group.check(operationOf(viewsAt(index), group.seq, 0));
  // Operations of one call run beside each other. All ranks of a call in place refuse the same lists, also those
  // that only read their buffers: else they would wait for the ranks that refuse.
  const isInPlace = roles.length === 1;
  group.checkApart(
    verb,
    roles
      .filter((role) => role !== null)
      .map((role) => ({ ...role, isWritten: role.isWritten || isInPlace })),
  );
  group.tell(
    verb,
    roles.flatMap((role) => (role?.isWritten ? role.views : [])),
  );

  const results: Packed[] = [];
  const operations = bundlesOf(parts).map((indexes) => {
    if (indexes.length === 1)
      return group.acceptTold(operationOf(viewsAt(indexes[0] as number), group.seq, 0));
    const views = roles.map((role) => {
      if (role === null) return null;
      const packed = allocPacked(
        indexes.map((index) => role.views[index] as BufferView),
        role.blocks,
      );
      if (role.isRead) pack(packed);
      if (role.isWritten) results.push(packed);
      return packed.whole;
    });
    const packing = packingOf(indexes.map((index) => parts[index] as BufferView));
    return group.acceptTold(operationOf(views, group.seq, packing));
  });
  return { operations, finish: () => results.forEach(unpack), isFenceable: results.length === 0 };
}
