import { endianness } from 'node:os';

/** Swaps elements of `width` bytes in place between the order of this machine and `order`; its own inverse. */
export function swapTo(elements: Buffer, width: number, order: 'LE' | 'BE'): void {
  if (endianness() === order) return;
  if (width === 2) elements.swap16();
  if (width === 4) elements.swap32();
  if (width === 8) elements.swap64();
}

/** The bytes of `view`, not copied. */
export function bytesOf(view: NodeJS.ArrayBufferView): Buffer {
  return Buffer.from(view.buffer, view.byteOffset, view.byteLength);
}
