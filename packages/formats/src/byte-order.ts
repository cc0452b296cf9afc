import { endianness } from 'node:os';

/**
 * Converts elements of `width` bytes in place between this machine's byte order and `order`, in either direction.
 * Elements of one byte stay as they are.
 */
export function swapTo(elements: Buffer, width: number, order: 'LE' | 'BE'): void {
  if (endianness() === order) return;
  if (width === 2) elements.swap16();
  if (width === 4) elements.swap32();
  if (width === 8) elements.swap64();
}
