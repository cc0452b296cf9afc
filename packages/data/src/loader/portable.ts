// A batch on its way to another thread: its memory moves, nothing is copied. Memory that is part of something larger is
// copied first, because a move takes the whole.
import { mapArrays } from '../datasets/map-arrays.ts';
import type { TypedArray } from '../typed-array.ts';

/** The batch to post, and the memory that moves with it. */
export function portable(batch: unknown): { readonly batch: unknown; readonly moved: ArrayBuffer[] } {
  const moved = new Set<ArrayBuffer>();
  const portableBatch = mapArrays(batch, (array) => {
    const whole = isWhole(array) ? array : copyOf(array);
    if (whole.buffer instanceof ArrayBuffer) moved.add(whole.buffer);
    return whole;
  });
  return { batch: portableBatch, moved: [...moved] };
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
