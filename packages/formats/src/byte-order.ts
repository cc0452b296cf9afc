import { endianness } from 'node:os';

/**
 * Swaps elements of `width` bytes in place between this machine's byte order and `order`. It is its own
 * inverse.
 */
export function swapTo(elements: Buffer, width: number, order: 'LE' | 'BE'): void {
  if (endianness() === order) return;
  if (width === 2) elements.swap16();
  if (width === 4) elements.swap32();
  if (width === 8) elements.swap64();
}
