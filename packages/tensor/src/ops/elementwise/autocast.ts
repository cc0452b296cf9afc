// Converts operands for autocast: products run in 16 bits; operations that sum many elements or grow fast run
// in float32. All other operations take their operands as they are, with the usual type promotion.
import { autocastDtype, withoutAutocast } from '../../core/context.ts';
import type { DType } from '../../core/dtype.ts';
import { isHalf } from '../../core/dtype.ts';
import { Tensor } from '../../core/tensor.ts';
import { to } from './convert.ts';

type Operands = readonly (Tensor | null)[];

/** Returns whether autocast converts tensors of a dtype. */
const isConverted = (dtype: DType): boolean => dtype === 'float32' || isHalf(dtype);

/**
 * Runs `op` on converted operands: 'low' converts to the 16-bit dtype of autocast, 'float32' to float32, and 'widest'
 * to float32 if an operand has it. `op` runs with autocast off, as its operands need no further conversion. float64 and
 * integers are not converted. Returns null if autocast is off.
 */
export function recast<T>(
  kind: 'low' | 'float32' | 'widest',
  operands: Operands,
  op: (...operands: Operands) => T,
): T | null {
  const low = autocastDtype();
  if (low === null) return null;
  const isWide = (operand: Tensor | null): boolean =>
    operand instanceof Tensor && operand.dtype === 'float32';
  if (kind === 'widest' && !operands.some(isWide)) return withoutAutocast(() => op(...operands));
  const wanted: DType = kind === 'low' ? low : 'float32';
  const converted = operands.map((operand) => {
    // The op itself refuses a value that is no tensor.
    if (!(operand instanceof Tensor)) return operand;
    return isConverted(operand.dtype) ? to(operand, wanted) : operand;
  });
  const out = withoutAutocast(() => op(...converted));
  for (const [i, operand] of converted.entries()) if (operand !== operands[i]) operand!.dispose();
  return out;
}

/** Returns whether an operation that needs one dtype takes these two: they are the same, or autocast converts both. */
export const isOneDtype = (a: DType, b: DType): boolean =>
  a === b || (autocastDtype() !== null && isConverted(a) && isConverted(b));

/** Returns whether kernels read this tensor in 16 bits and compute in float32: autocast needs no copy in float32. */
export const isReadAsFloat32 = (a: Tensor): boolean => isHalf(a.dtype) && a.device !== 'cpu';

/**
 * Converts `out`, the float32 result of a kernel whose operand had `dtype`, to that dtype, and disposes `out`. Under
 * autocast, returns `out` as it is.
 */
export function inDtypeOf(dtype: DType, out: Tensor): Tensor {
  if (out.dtype === dtype || autocastDtype() !== null) return out;
  const result = to(out, dtype);
  out.dispose();
  return result;
}
