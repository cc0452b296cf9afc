// Several buffers in the place of one. A packed buffer has `blocks` blocks of equal length, and each block holds the
// same part of every member: members of 2 and 1 elements a block, packed in 2 blocks, lie there as aab aab.

import { byteSize } from '../dtype.ts';
import { allocHost, type BufferView, elementsOf } from './buffer.ts';

/** Smaller buffers than this travel together: to copy them costs less than an operation of their own. */
const packedBytes = 64 * 1024;

export interface Packed {
  readonly whole: BufferView;
  readonly members: readonly BufferView[];
  readonly blocks: number;
}

/** New memory for the members, which have one dtype and lie in host memory. Copies nothing. */
export function allocPacked(members: readonly BufferView[], blocks = 1): Packed {
  const count = members.reduce((sum, member) => sum + member.count, 0);
  return { whole: allocHost(count, (members[0] as BufferView).dtype), members, blocks };
}

/** Copies the members to the packed buffer. */
export function pack(packed: Packed): void {
  forEachPiece(packed, (piece, place) => place.set(piece as never));
}

/** Copies the packed buffer to the members. */
export function unpack(packed: Packed): void {
  forEachPiece(packed, (piece, place) => piece.set(place as never));
}

type Elements = ReturnType<typeof elementsOf>;

function forEachPiece(
  { whole, members, blocks }: Packed,
  copy: (piece: Elements, place: Elements) => void,
): void {
  const places = elementsOf(whole);
  const all = members.map((member) => elementsOf(member));
  let from = 0;
  for (let block = 0; block < blocks; block++) {
    for (const elements of all) {
      const count = elements.length / blocks;
      copy(elements.subarray(block * count, (block + 1) * count), places.subarray(from, from + count));
      from += count;
    }
  }
}

/**
 * Which buffers travel together, by index: small ones of one dtype, in order; every other alone. `parts` are what one
 * rank contributes or receives, whose lengths are the same on all ranks: so all ranks come to the same bundles.
 */
export function bundlesOf(parts: readonly BufferView[]): readonly (readonly number[])[] {
  const bundles: number[][] = [];
  const open = new Map<string, number[]>();
  for (const [index, { dtype, count, host }] of parts.entries()) {
    const canJoin = host !== null && count * byteSize(dtype) < packedBytes;
    const bundle = canJoin ? open.get(dtype) : undefined;
    if (bundle !== undefined) {
      bundle.push(index);
      continue;
    }
    bundles.push([index]);
    if (canJoin) open.set(dtype, bundles.at(-1) as number[]);
  }
  return bundles;
}

/** Tells lists of equally many elements apart, as an operation's `packing`. */
export function packingOf(parts: readonly BufferView[]): number {
  return digestOf(parts.map(({ count }) => count));
}

/** FNV-1a over integers below 2^48, for an operation's `packing`; never 0. */
export function digestOf(integers: readonly number[]): number {
  let hash = 0x811c9dc5;
  for (const integer of integers) {
    for (let rest = integer, byte = 0; byte < 6; byte++, rest = Math.floor(rest / 256)) {
      hash = Math.imul(hash ^ (rest % 256), 0x01000193);
    }
  }
  return (hash >>> 1) | 1;
}
