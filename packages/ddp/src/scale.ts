// Multiplies or divides gradients in place, whatever their dtype. Halves are computed in float64 and rounded once.
import {
  type BufferView,
  elementsOf,
  fromBfloat16,
  fromFloat16,
  toBfloat16,
  toFloat16,
} from '@ringwise/collectives';

/** Divides every element by `divisor`; float dtypes only. */
export function divide(view: BufferView, divisor: number): void {
  if (divisor === 1) return;
  const elements = elementsOf(view) as Float32Array | Float64Array | Uint16Array;
  if (view.dtype === 'float16') {
    for (let i = 0; i < elements.length; i++) elements[i] = toFloat16(fromFloat16(elements[i]!) / divisor);
  } else if (view.dtype === 'bfloat16') {
    for (let i = 0; i < elements.length; i++) elements[i] = toBfloat16(fromBfloat16(elements[i]!) / divisor);
  } else {
    for (let i = 0; i < elements.length; i++) elements[i]! /= divisor;
  }
}
