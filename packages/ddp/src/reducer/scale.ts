// Divides gradients in place. 16-bit and 8-bit floats are computed in float64 and rounded once.
import { type BufferView, elementsOf, isNarrowFloat, narrowFloats } from '@ringwise/collectives';

/** Divides every element by `divisor`. Float dtypes only. */
export function divide(view: BufferView, divisor: number): void {
  if (divisor === 1) return;
  const elements = elementsOf(view) as Float32Array | Float64Array | Uint16Array | Uint8Array;
  if (isNarrowFloat(view.dtype)) {
    const { from, to } = narrowFloats[view.dtype];
    for (let i = 0; i < elements.length; i++) elements[i] = to(from(elements[i]!) / divisor);
  } else {
    for (let i = 0; i < elements.length; i++) elements[i]! /= divisor;
  }
}
