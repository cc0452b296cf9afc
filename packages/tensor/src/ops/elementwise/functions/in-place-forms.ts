// Makes the in-place forms of elementwise operations. Their rules are those of add_(): nothing is recorded, the change
// is visible in every view, and the tensor must be able to hold the dtype of the result.
import { isRecording } from '../../../autograd/node.ts';
import type { MapOp } from '../../../backends/declarations/names.ts';
import { kernels } from '../../../backends/index.ts';
import { noGrad, scope } from '../../../core/context.ts';
import { type DType, isFloat } from '../../../core/dtype.ts';
import { copyInto } from '../../../core/memory/transfer.ts';
import { sameShape } from '../../../core/shape.ts';
import { Tensor } from '../../../core/tensor.ts';
import { cannotStretchInto, floatIntoInteger, recordedInPlace, writtenTwice } from '../../../errors.ts';
import { requireTensor } from '../convert.ts';
import { hasTwins } from '../in-place.ts';
import { unaryRules } from '../unary-rules.ts';

/** An operation whose first operand is the tensor that its in-place form writes. */
type Op = (a: Tensor, ...rest: never[]) => Tensor;

/** As in PyTorch, floats do not become integers, and nothing but bool becomes a bool. */
const isTaken = (from: DType, into: DType): boolean =>
  from === 'bool' || (into !== 'bool' && (isFloat(into) || !isFloat(from)));

/**
 * Returns the function that computes `op` and writes the result into its first operand, which it returns. The result
 * is written when all operands have been read, so they may share its memory. Throws for a tensor that requires a
 * gradient, except in noGrad(); for a result of another shape; for elements that share memory; and for a result whose
 * dtype the tensor does not take.
 */
export function inPlaceForm(name: string, op: Op): Op {
  const own = `${name}_`;
  return (a: Tensor, ...rest: never[]): Tensor => {
    requireTensor(own, a);
    for (const operand of [a, ...(rest as unknown[])])
      if (operand instanceof Tensor && isRecording(operand)) throw recordedInPlace(own);
    if (hasTwins(a)) throw writtenTwice(own, a.shape);
    if (rest.length === 0 && name in unaryRules && isFloat(a.dtype)) {
      kernels().map(name as MapOp, a.dtype, a.shape, a.strided, a.strided);
    } else {
      scope(() => {
        const result = noGrad(() => op(a, ...rest));
        if (!sameShape(result.shape, a.shape)) throw cannotStretchInto(own, result.shape, a.shape);
        if (!isTaken(result.dtype, a.dtype)) throw floatIntoInteger(own, result.dtype, a.dtype);
        copyInto(a.strided, a.shape, result.strided);
      });
    }
    a.storage.version++;
    return a;
  };
}
