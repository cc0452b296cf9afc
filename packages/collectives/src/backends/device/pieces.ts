// Splits an operation on device memory into pieces, each the same operation on data that fits into a slot of
// host memory. All ranks with device memory split alike, because the number of pieces depends only on what the
// ranks must agree on. Messages, and allToAll with counts, are not split: only two ranks agree on their lengths.
import type { Operation } from '../../backend.ts';
import { byteSize } from '../../dtype.ts';
import type { BufferView } from '../../group/buffer.ts';
import { digestOf } from '../../group/pack.ts';

/**
 * A copy between a device and a slot. `isDown`: copied to the slot before the operation. `isUp`: copied back
 * after it.
 */
export interface Move {
  /** Offset in the slot in bytes. */
  readonly offset: number;
  readonly address: bigint;
  readonly bytes: number;
  readonly isDown: boolean;
  readonly isUp: boolean;
}

export interface Piece {
  readonly moves: readonly Move[];
  readonly operation: Operation;
}

type Way = 'down' | 'up' | 'both';
const alignment = 64;

/** Returns whether an operation uses device memory. Called for every operation. */
export function needsDevice(operation: Operation): boolean {
  switch (operation.verb) {
    case 'barrier':
      return false;
    case 'allReduce':
      return operation.buffer.handle !== null || isOnDevice(operation.residual);
    case 'reduce':
    case 'broadcast':
    case 'send':
    case 'recv':
      return operation.buffer.handle !== null;
    default:
      return isOnDevice(operation.input) || isOnDevice(operation.output);
  }
}

const isOnDevice = (view: BufferView | null | undefined): view is BufferView =>
  view !== null && view !== undefined && view.handle !== null;

/** Returns the operation's buffers that are on a device. */
export function deviceViews(operation: Operation): BufferView[] {
  const { buffer, input, output, residual } = operation as {
    readonly [name in 'buffer' | 'input' | 'output' | 'residual']?: BufferView | null;
  };
  return [buffer, input, output, residual].filter(isOnDevice);
}

/** Elements of each rank's part of a buffer. */
type Parts = readonly number[];

/** Allocates the buffers of one piece in a slot and collects the copies that fill and empty them. */
class Layout {
  readonly moves: Move[] = [];
  readonly #slot: Uint8Array;
  #end = 0;

  constructor(slot: Uint8Array) {
    this.#slot = slot;
  }

  /**
   * Reserves host memory for elements `start` to `start + size` of each part, packed without gaps, and adds
   * the copies.
   */
  take(view: BufferView, way: Way, parts: Parts, start: number, size: number): BufferView {
    const bytes = byteSize(view.dtype);
    const sizes = parts.map((part) => Math.max(0, Math.min(part - start, size)));
    const count = sizes.reduce((sum, each) => sum + each, 0);
    const begin = this.#end;
    this.#end += Math.ceil((count * bytes) / alignment) * alignment;
    let from = start;
    let offset = begin;
    for (const [i, part] of parts.entries()) {
      const length = sizes[i]! * bytes;
      if (length > 0) {
        const address = view.handle!.address + BigInt(from * bytes);
        this.moves.push({ offset, address, bytes: length, isDown: way !== 'up', isUp: way !== 'down' });
      }
      offset += length;
      from += part;
    }
    const host = this.#slot.subarray(begin, begin + count * bytes);
    return { dtype: view.dtype, count, device: { kind: 'cpu', index: 0 }, host, handle: null };
  }
}

/**
 * Returns a view's share of a piece: staged in the slot if the view is on a device, else a subarray of the
 * host memory.
 */
type Take = (view: BufferView, way: Way, parts: Parts) => BufferView;

interface Extent {
  /** Elements of the longest part. */
  readonly longest: number;
  /** Bytes of slot memory for one element of every part. */
  readonly bytesEach: number;
}

function extentOf(operation: Operation, size: number): Extent {
  switch (operation.verb) {
    case 'barrier':
      return { longest: 0, bytesEach: 1 };
    case 'allReduce':
    case 'reduce':
    case 'broadcast': {
      const { dtype, count } = operation.buffer;
      // Every allReduce has room for a residual: ranks with and without one must split alike.
      return { longest: count, bytesEach: byteSize(dtype) + ('residual' in operation ? 4 : 0) };
    }
    case 'send':
    case 'recv':
      return { longest: operation.buffer.count, bytesEach: byteSize(operation.buffer.dtype) };
    case 'allToAll': {
      const { input, output, sendCounts } = operation;
      const bytes = byteSize(input.dtype);
      if (sendCounts === null) return { longest: input.count / size, bytesEach: 2 * size * bytes };
      // Always one piece, so treat both sides as parts of one length.
      return { longest: Math.max(input.count, output.count), bytesEach: 2 * bytes };
    }
    default: {
      const one =
        operation.verb === 'scatter' || operation.verb === 'reduceScatter'
          ? operation.output
          : operation.input;
      const longest = operation.counts === null ? one.count : Math.max(0, ...operation.counts);
      return { longest, bytesEach: (1 + size) * byteSize(one.dtype) };
    }
  }
}

/** Returns whether the operation must not be split. */
export const isWhole = (operation: Operation): boolean =>
  operation.verb === 'send' ||
  operation.verb === 'recv' ||
  (operation.verb === 'allToAll' && operation.sendCounts !== null);

/** Returns the bytes of host memory that the operation needs if it is not split. */
export function wholeBytes(operation: Operation, size: number): number {
  const { longest, bytesEach } = extentOf(operation, size);
  return longest * bytesEach + 4 * alignment;
}

/** Returns how many elements of each part one piece has. */
function stepOf(operation: Operation, size: number, slotBytes: number): number {
  const { longest, bytesEach } = extentOf(operation, size);
  if (isWhole(operation)) return Math.max(1, longest);
  return Math.max(1, Math.floor((slotBytes - 4 * alignment) / bytesEach));
}

export function countPieces(operation: Operation, size: number, slotBytes: number): number {
  return Math.max(1, Math.ceil(extentOf(operation, size).longest / stepOf(operation, size, slotBytes)));
}

/**
 * Returns the `packing` of all pieces of a collective: a digest of the whole lengths. Ranks whose whole lengths differ
 * then disagree about the first piece, and no piece agrees with another operation.
 */
export function packingOfPieces(operation: Operation, size: number): number {
  const packing = 'packing' in operation ? operation.packing : 0;
  const counts = ('counts' in operation && operation.counts) || [];
  return digestOf([packing, extentOf(operation, size).longest, ...counts]);
}

/** Returns piece `index` of an operation, with its buffers in `slot`. */
export function pieceOf(
  operation: Operation,
  rank: number,
  size: number,
  slot: Uint8Array,
  index: number,
): Piece {
  const layout = new Layout(slot);
  const step = stepOf(operation, size, slot.length);
  const start = index * step;
  const take: Take = (view, way, parts) =>
    isOnDevice(view) ? layout.take(view, way, parts, start, step) : cutHost(view, start, step);
  const cut = cutBy(operation, rank, size, take, (counts) =>
    counts.map((count) => Math.max(0, Math.min(count - start, step))),
  );
  return { moves: layout.moves, operation: cut };
}

/**
 * Returns a piece's share of a host buffer without a copy. Only one of an allReduce's buffer and residual can be on the
 * host while the other is on a device; both have a single part.
 */
function cutHost(view: BufferView, start: number, size: number): BufferView {
  const bytes = byteSize(view.dtype);
  const count = Math.max(0, Math.min(view.count - start, size));
  const { buffer, byteOffset } = view.host!;
  return { ...view, count, host: new Uint8Array(buffer, byteOffset + start * bytes, count * bytes) };
}

function cutBy(
  operation: Operation,
  rank: number,
  size: number,
  take: Take,
  cutCounts: (counts: readonly number[]) => readonly number[],
): Operation {
  const all = (count: number): Parts => new Array<number>(size).fill(count);
  switch (operation.verb) {
    case 'barrier':
      return operation;
    case 'allReduce': {
      const { buffer, residual } = operation;
      const whole = [buffer.count];
      return {
        ...operation,
        buffer: take(buffer, 'both', whole),
        residual: residual && take(residual, 'both', whole),
      };
    }
    case 'reduce': {
      const { buffer, root } = operation;
      return { ...operation, buffer: take(buffer, rank === root ? 'both' : 'down', [buffer.count]) };
    }
    case 'broadcast': {
      const { buffer, root } = operation;
      return { ...operation, buffer: take(buffer, rank === root ? 'down' : 'up', [buffer.count]) };
    }
    case 'send':
    case 'recv': {
      const { buffer, verb } = operation;
      return { ...operation, buffer: take(buffer, verb === 'send' ? 'down' : 'up', [buffer.count]) };
    }
    case 'allGather':
    case 'gather': {
      const { input, output, counts } = operation;
      const parts = counts ?? all(input.count);
      const cut = {
        ...operation,
        input: take(input, 'down', [input.count]),
        output: output && take(output, 'up', parts),
        counts: counts && cutCounts(counts),
      };
      return cut as Operation;
    }
    case 'scatter':
    case 'reduceScatter': {
      const { input, output, counts } = operation;
      const parts = counts ?? all(output.count);
      const cut = {
        ...operation,
        input: input && take(input, 'down', parts),
        output: take(output, 'up', [output.count]),
        counts: counts && cutCounts(counts),
      };
      return cut as Operation;
    }
    case 'allToAll': {
      const { input, output, sendCounts } = operation;
      const parts = (view: BufferView): Parts => (sendCounts ? [view.count] : all(view.count / size));
      return {
        ...operation,
        input: take(input, 'down', parts(input)),
        output: take(output, 'up', parts(output)),
      };
    }
  }
}
