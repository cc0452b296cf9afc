// Prepares a batch for another thread: its memory is transferred without a copy, and this thread can no longer use it.
// An array that is part of a larger buffer is copied first, because a transfer moves the whole buffer, and so is memory
// that this thread still needs.
import { mapArrays } from '../datasets/map-arrays.ts';
import type { TypedArray } from '../typed-array.ts';

/** Returns the batch to post, and the buffers to transfer with it: those of the batch only if it may be moved. */
export function portable(
  batch: unknown,
  isMovable: boolean,
): { readonly batch: unknown; readonly moved: ArrayBuffer[] } {
  const moved = new Set<ArrayBuffer>();
  const portableBatch = mapArrays(batch, (array) => {
    const whole = isMovable && isWhole(array) ? array : copyOf(array);
    if (whole.buffer instanceof ArrayBuffer) moved.add(whole.buffer);
    return whole;
  });
  return { batch: portableBatch, moved: [...moved] };
}

function isWhole({ buffer, byteLength }: TypedArray): boolean {
  return buffer instanceof ArrayBuffer ? buffer.byteLength === byteLength : true;
}

/** Copies an array. Does not call value.slice(), because a Node.js Buffer's slice shares memory. */
function copyOf(value: TypedArray): TypedArray {
  const slice = Object.getPrototypeOf(Uint8Array).prototype.slice as (this: TypedArray) => TypedArray;
  return slice.call(
    value instanceof Buffer ? new Uint8Array(value.buffer, value.byteOffset, value.length) : value,
  );
}
