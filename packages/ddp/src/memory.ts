// BufferViews as the other files need them: handed to a group, as elements, as bytes.
import { type BufferCarrier, type BufferView, bufferSymbol, elementsOf } from '@ringwise/collectives';

/** A view as an argument for the verbs of a group. */
export function carrier(view: BufferView): BufferCarrier {
  return { [bufferSymbol]: () => view };
}

/** Copies between host memory of the same dtype and count. */
export function copy(from: BufferView, to: BufferView): void {
  elementsOf(to).set(elementsOf(from) as never);
}

/** Part of a buffer in host memory. */
export function slice(view: BufferView, offset: number, count: number): BufferView {
  return { ...view, count, host: elementsOf(view).subarray(offset, offset + count) };
}

export function isSameMemory(a: BufferView, b: BufferView): boolean {
  if (a.host === null || b.host === null) return a.handle === b.handle;
  return a.host.buffer === b.host.buffer && a.host.byteOffset === b.host.byteOffset;
}

/** The bytes of host memory. */
export function bytesOf(host: ArrayBufferView): Uint8Array {
  return new Uint8Array(host.buffer, host.byteOffset, host.byteLength);
}
