// The promotion of element types that the package exports: that of dtype.ts, with checks of its arguments.
import { kindOf } from '../checks/argument-errors.ts';
import { argument } from '../errors/tensor-error.ts';
import {
  type DType,
  isDType,
  promoteTypes as promoted,
  resultType as resulting,
  type Typed,
} from './dtype.ts';

/** Returns the dtype to which an operation converts both. Throws ERR_TENSOR_ARGUMENT for a name that is no dtype. */
export function promoteTypes(a: DType, b: DType): DType {
  for (const dtype of [a, b])
    if (!isDType(dtype)) throw argument(`promoteTypes: expected two dtypes, got ${kindOf(dtype)}.`);
  return promoted(a, b);
}

/**
 * Returns the joint dtype of operands. Tensors with dimensions decide; tensors without dimensions, and after them
 * numbers, count only if they are of a higher kind (bool < integer < float). A number without a fraction is an integer
 * unless it exceeds int64. Throws ERR_TENSOR_ARGUMENT for an operand of another kind.
 */
export function resultType(...operands: readonly (Typed | number)[]): DType {
  for (const operand of operands)
    if (typeof operand !== 'number' && !isDType((operand as Typed | null | undefined)?.dtype))
      throw argument(`resultType: expected tensors and numbers, got ${kindOf(operand)}.`);
  return resulting(...operands);
}
