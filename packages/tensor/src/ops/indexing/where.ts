// where(): a choice between elements, or the positions at which a mask is true.
import type { Operand, Tensor } from '../../core/tensor.ts';
import { where as choose } from '../elementwise/choose.ts';
import { nonzeroByDim } from './mask.ts';

/** Returns a where `mask` (bool) is true, else b. All are broadcast. A number must fit the dtype of the result. */
export function where(mask: Tensor, a: Operand, b: Operand): Tensor;
/**
 * Returns the positions of the elements that are not 0, an int64 tensor [count] for each dimension, as nonzero() does.
 * On a device, waits for them.
 */
export function where(mask: Tensor): Tensor[];
export function where(mask: Tensor, a?: Operand, b?: Operand): Tensor | Tensor[] {
  if (a === undefined && b === undefined) return nonzeroByDim(mask);
  return choose(mask, a!, b!);
}
