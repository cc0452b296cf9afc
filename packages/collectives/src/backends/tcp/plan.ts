// Plans which bytes of a collective go from which rank to which: pure data, so that all ranks derive matching plans.
// There are two kinds of plans. A move copies memory directly to its destination. A combination splits a vector into
// one region per rank. Each rank receives the terms of its region from all ranks, reduces them and sends the result to
// all ranks that need it; a long broadcast is a combination of one term. Each rank sends directly to every other rank:
// in a move every byte crosses the network once, and in a combination every rank sends and receives at most 2 (n-1)/n
// of the vector, as in a ring.
import type { CollectiveOperation } from '../../backend.ts';
import { byteSize } from '../../dtype.ts';
import { type BufferView, elementsOf } from '../../group/buffer.ts';
import { expectedFrom, sentTo } from '../arithmetic/execute.ts';

/** Largest vector in bytes that is sent whole to all ranks that need the result: one step instead of two. */
export const shortBytes = 16 * 1024;

const none = new Uint8Array(0);

export interface Plan {
  /** Memory to send to each rank as soon as all ranks agree, by rank. */
  readonly sends: readonly Uint8Array[];
  /** Memory that receives the data of each rank, by rank. In a combination: the results of the ranks' regions. */
  readonly receives: readonly Uint8Array[];
  /** Null for a move. */
  readonly combination: Combination | null;
}

/** The reduction that this rank does for its region. */
export interface Combination {
  /** Ranks that contribute, in rank order. */
  readonly terms: readonly number[];
  /** This rank's term for its own region; null if it does not contribute. */
  readonly own: BufferView | null;
  /** Memory for the result, as long as the region; null if this rank only forwards it. */
  readonly result: BufferView | null;
  /** Elements of this rank's region. */
  readonly count: number;
  /** Other ranks that get the result. */
  readonly resultTo: readonly number[];
}

export function planOf(operation: CollectiveOperation, rank: number, size: number): Plan {
  const all = Array.from({ length: size }, (_, other) => other);
  const others = all.filter((other) => other !== rank);
  switch (operation.verb) {
    case 'barrier':
      return { sends: all.map(() => none), receives: all.map(() => none), combination: null };
    case 'allReduce':
    case 'reduce': {
      const { buffer } = operation;
      const needed = operation.verb === 'allReduce' ? all : [operation.root];
      const isNeeded = needed.includes(rank);
      if (isShort(buffer)) {
        const sends = all.map((other) => (needed.includes(other) ? bytesOf(buffer) : none));
        const count = isNeeded ? buffer.count : 0;
        const result = isNeeded ? buffer : null;
        return {
          sends,
          receives: all.map(() => none),
          combination: { terms: all, own: buffer, result, count, resultTo: [] },
        };
      }
      const regions = split(buffer, size);
      const own = regions[rank]!;
      return {
        sends: regions.map(bytesOf),
        receives: regions.map((region) => (isNeeded ? bytesOf(region) : none)),
        combination: {
          terms: all,
          own,
          result: isNeeded ? own : null,
          count: own.count,
          resultTo: others.filter((other) => needed.includes(other)),
        },
      };
    }
    case 'reduceScatter': {
      const { input, output, counts } = operation;
      const regions = cut(input, counts ?? all.map(() => output.count));
      const own = regions[rank]!;
      return {
        sends: regions.map(bytesOf),
        receives: all.map(() => none),
        combination: { terms: all, own, result: output, count: own.count, resultTo: [] },
      };
    }
    case 'broadcast': {
      const { buffer, root } = operation;
      const isRoot = rank === root;
      if (isShort(buffer) || size === 2) {
        return move(
          all.map(() => (isRoot ? bytesOf(buffer) : none)),
          all.map((other) => (other === root && !isRoot ? bytesOf(buffer) : none)),
        );
      }
      const regions = split(buffer, size);
      const own = regions[rank]!;
      return {
        sends: regions.map((region) => (isRoot ? bytesOf(region) : none)),
        receives: regions.map((region) => (isRoot ? none : bytesOf(region))),
        combination: {
          terms: [root],
          own: isRoot ? own : null,
          result: own,
          count: own.count,
          resultTo: others.filter((other) => other !== root),
        },
      };
    }
    case 'allGather':
    case 'gather': {
      const { input, output, counts } = operation;
      const isNeeded = (other: number) => operation.verb === 'allGather' || operation.root === other;
      const parts = output === null ? null : cut(output, counts ?? all.map(() => input.count));
      return move(
        all.map((other) => (isNeeded(other) ? bytesOf(input) : none)),
        all.map((other) => (parts === null ? none : bytesOf(parts[other]!))),
      );
    }
    case 'scatter': {
      const { input, output, counts, root } = operation;
      const parts = input === null ? null : cut(input, counts ?? all.map(() => output.count));
      return move(
        all.map((other) => (parts === null ? none : bytesOf(parts[other]!))),
        all.map((other) => (other === root ? bytesOf(output) : none)),
      );
    }
    case 'allToAll': {
      const sends = all.map((other) => sentTo(other, size, operation));
      const receives = all.map((other) => expectedFrom(other, size, operation));
      return move(cut(operation.input, sends).map(bytesOf), cut(operation.output, receives).map(bytesOf));
    }
  }
}

function move(sends: readonly Uint8Array[], receives: readonly Uint8Array[]): Plan {
  return { sends, receives, combination: null };
}

function isShort({ count, dtype }: BufferView): boolean {
  return count * byteSize(dtype) <= shortBytes;
}

/** Cuts a vector into `size` regions of nearly equal length. */
function split(view: BufferView, size: number): BufferView[] {
  const { count } = view;
  const start = (region: number) => Math.floor((count * region) / size);
  return cut(
    view,
    Array.from({ length: size }, (_, region) => start(region + 1) - start(region)),
  );
}

function cut(view: BufferView, counts: readonly number[]): BufferView[] {
  let from = 0;
  return counts.map((count) => {
    const part = partOf(view, from, count);
    from += count;
    return part;
  });
}

/** Returns a view of `count` elements of `view` from its element `from` on. */
export function partOf(view: BufferView, from: number, count: number): BufferView {
  const host = elementsOf(view).subarray(from, from + count);
  return { dtype: view.dtype, count, device: view.device, host, handle: null };
}

/** Returns the bytes of host memory. */
export function bytesOf({ host }: BufferView): Uint8Array {
  const { buffer, byteOffset, byteLength } = host!;
  return new Uint8Array(buffer, byteOffset, byteLength);
}
