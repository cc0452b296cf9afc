// Packs several buffers into one. A packed buffer has `blocks` blocks of equal length, and each block holds
// the same part of every member. For example, members `a` (2 elements per block) and `b` (1 element per
// block) in 2 blocks are laid out as aab aab.

import { byteSize } from '../dtype.ts';
import { allocHost, type BufferView, elementsOf } from './buffer.ts';

/** Buffers smaller than this are packed: copying them costs less than an operation of their own. */
const packedBytes = 64 * 1024;

export interface Packed {
  readonly whole: BufferView;
  readonly members: readonly BufferView[];
  readonly blocks: number;
}

/** Allocates memory for the members, which must have one dtype and be host memory. Copies nothing. */
export function allocPacked(members: readonly BufferView[], blocks = 1): Packed {
  const count = members.reduce((sum, member) => sum + member.count, 0);
  return { whole: allocHost(count, (members[0] as BufferView).dtype), members, blocks };
}

/** Copies the members to the packed buffer. */
export function pack(packed: Packed): void {
  forEachPiece(packed, (piece, packedPart) => packedPart.set(piece as never));
}

/** Copies the packed buffer to the members. */
export function unpack(packed: Packed): void {
  forEachPiece(packed, (piece, packedPart) => piece.set(packedPart as never));
}

type Elements = ReturnType<typeof elementsOf>;

function forEachPiece(
  { whole, members, blocks }: Packed,
  copy: (piece: Elements, packedPart: Elements) => void,
): void {
  const packedElements = elementsOf(whole);
  const all = members.map((member) => elementsOf(member));
  let from = 0;
  for (let block = 0; block < blocks; block++) {
    for (const elements of all) {
      const count = elements.length / blocks;
      copy(
        elements.subarray(block * count, (block + 1) * count),
        packedElements.subarray(from, from + count),
      );
      from += count;
    }
  }
}

/**
 * Returns which buffers share an operation, as lists of indices: small buffers of one dtype in host memory
 * together, every other buffer alone. `parts` are the buffers that one rank contributes or receives. Ranks with
 * the same lengths, dtypes and kinds of memory get the same result.
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

/**
 * Returns a digest of the buffers' lengths, for an operation's `packing`: distinguishes lists with equal
 * totals.
 */
export function packingOf(parts: readonly BufferView[]): number {
  return digestOf(parts.map(({ count }) => count));
}

/** Returns the FNV-1a hash of integers below 2^48, for an operation's `packing`; never 0. */
export function digestOf(integers: readonly number[]): number {
  let hash = 0x811c9dc5;
  for (const integer of integers) {
    for (let rest = integer, byte = 0; byte < 6; byte++, rest = Math.floor(rest / 256)) {
      hash = Math.imul(hash ^ (rest % 256), 0x01000193);
    }
  }
  return (hash >>> 1) | 1;
}
