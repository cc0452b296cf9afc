// A batch on its way to another thread: its memory moves, nothing is copied. Memory that is part of something larger is
// copied first, because a move takes the whole.
import { isTypedArray, type TypedArray } from './typed-array.ts';

/** The batch to post, and the memory that moves with it. */
export function portable(batch: unknown): { readonly batch: unknown; readonly moved: ArrayBuffer[] } {
  const moved = new Set<ArrayBuffer>();
  const visit = (value: unknown): unknown => {
    if (isTypedArray(value)) {
      const whole = isWhole(value) ? value : copyOf(value);
      if (whole.buffer instanceof ArrayBuffer) moved.add(whole.buffer);
      return whole;
    }
    if (Array.isArray(value)) return value.map(visit);
    if (typeof value !== 'object' || value === null) return value;
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, visit(item)]));
  };
  return { batch: visit(batch), moved: [...moved] };
}

function isWhole({ buffer, byteLength }: TypedArray): boolean {
  return buffer instanceof ArrayBuffer ? buffer.byteLength === byteLength : true;
}

/** Not value.slice(): that of a Node Buffer shares memory. */
function copyOf(value: TypedArray): TypedArray {
  const slice = Object.getPrototypeOf(Uint8Array).prototype.slice as (this: TypedArray) => TypedArray;
  return slice.call(
    value instanceof Buffer ? new Uint8Array(value.buffer, value.byteOffset, value.length) : value,
  );
}
