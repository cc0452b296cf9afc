// Assigns parts of the state to the members that send them, and computes checksums that show which arrays a joining
// member already has.
import { crc32 } from 'node:zlib';
import type { PackedState } from '@ringwise/ddp';

/**
 * Divides items of these sizes among `count` members: consecutive ones, about equally many bytes each. Returns the
 * indices of each member's items.
 */
export function sharesOf(sizes: readonly number[], count: number): number[][] {
  const shares = Array.from({ length: count }, (): number[] => []);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  let before = 0;
  for (const [index, size] of sizes.entries()) {
    const middle = before + size / 2;
    const share = total === 0 ? 0 : Math.min(count - 1, Math.floor((middle * count) / total));
    shares[share]!.push(index);
    before += size;
  }
  return shares;
}

/**
 * Returns the CRC-32 of an array, to compare values that two members have computed. A state that is sent has a SHA-256.
 */
export const sumOf = (memory: Uint8Array): number => crc32(memory);

/** Returns the checksums of these arrays, which may be in device memory. */
export async function sumsOf(state: PackedState, indices: readonly number[]): Promise<number[]> {
  const sums: number[] = [];
  for (const index of indices) sums.push(sumOf(await state.arrays[index]!.read()));
  return sums;
}

/** Tells whether two states have arrays of the same sizes. */
export function haveSameArrays(
  a: readonly { readonly bytes: number }[],
  b: readonly { readonly bytes: number }[],
): boolean {
  return a.length === b.length && a.every(({ bytes }, index) => bytes === b[index]!.bytes);
}
