// Copies: in other memory, in another dtype, in dense order.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import { type DType, isFloat, isHalf } from '../dtype.ts';
import { needsFloat } from '../errors.ts';
import { empty, type Tensor } from '../tensor.ts';

function copied(name: string, a: Tensor, dtype: DType): Tensor {
  const out = empty(dtype, a.shape);
  kernels().copy(a.shape, out.strided, a.strided);
  if (!isRecording(a) || !isFloat(dtype)) return out;
  const target = a.target!;
  return record(name, out, [target], [], (grad) => target.share(grad));
}

/** A dense copy in memory of its own. */
export const clone = (a: Tensor): Tensor => copied('clone', a, a.dtype);

/** A copy in another dtype; the tensor itself if it has that dtype. Floats are cut towards zero. */
export const to = (a: Tensor, dtype: DType): Tensor => (a.dtype === dtype ? a : copied('to', a, dtype));

/** The tensor itself if its elements lie one behind the other in row-major order, else a copy. */
export const contiguous = (a: Tensor): Tensor => (a.isContiguous ? a : copied('contiguous', a, a.dtype));

/** Checks that an op that is defined on floats only gets one. */
export function requireFloat(op: string, a: Tensor): void {
  if (!isFloat(a.dtype)) throw needsFloat(op, a.dtype);
}

/** Runs an op whose kernel has no float16 and bfloat16 in float32. */
export function inFloat32(a: Tensor, op: (a: Tensor) => Tensor): Tensor {
  const wide = to(a, 'float32');
  const result = op(wide);
  const out = to(result, a.dtype);
  wide.dispose();
  result.dispose();
  return out;
}

export const needsFloat32 = (a: Tensor): boolean => isHalf(a.dtype);
