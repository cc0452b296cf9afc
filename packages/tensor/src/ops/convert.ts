// Copies, dtypes, and bringing two operands to one dtype: int32 → int64 → float32, the later wins.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import { needsFloat } from '../errors.ts';
import type { DType } from '../kernels.ts';
import { allocate } from '../storage.ts';
import { empty, type Operand, Tensor } from '../tensor.ts';

/** A copy in memory of its own. */
export function clone(a: Tensor): Tensor {
  const out = empty(a.dtype, a.shape);
  kernels().copy(out.memory, a.memory);
  if (!isRecording(a)) return out;
  const target = a.target!;
  return record('clone', out, [target], [], (grad) => target.share(grad));
}

/** A copy in another dtype, without a graph; the tensor itself if it has that dtype. Floats are cut towards zero. */
export function to(a: Tensor, dtype: DType): Tensor {
  if (a.dtype === dtype) return a;
  const out = empty(dtype, a.shape);
  kernels().copy(out.memory, a.memory);
  return out;
}

/** Checks that an op that is defined on float32 only gets it. */
export function requireFloat(op: string, a: Tensor): void {
  if (a.dtype !== 'float32') throw needsFloat(op, a.dtype);
}

const rank: Record<DType, number> = { int32: 0, int64: 1, float32: 2 };

/** Numbers take the dtype of the tensor beside them, except that a fraction makes float32. */
function commonDtype(a: Operand, b: Operand): DType {
  if (typeof a === 'number') return typeof b === 'number' || !Number.isInteger(a) ? 'float32' : b.dtype;
  if (typeof b === 'number') return Number.isInteger(b) ? a.dtype : 'float32';
  return rank[a.dtype] > rank[b.dtype] ? a.dtype : b.dtype;
}

/** `value` as a tensor of `dtype`: itself, or a temporary that no scope knows. */
function operand(value: Operand, dtype: DType): Tensor {
  if (typeof value !== 'number') {
    if (value.dtype === dtype) return value;
    const converted = allocate(dtype, value.count);
    kernels().copy(converted.memory, value.memory);
    return new Tensor(converted, value.shape);
  }
  const storage = allocate(dtype, 1);
  kernels().fill(storage.memory, value);
  return new Tensor(storage, []);
}

/** Runs `op` on both operands as tensors of one dtype, `dtype` or the one that both fit in. */
export function promoted(
  a: Operand,
  b: Operand,
  dtype: DType | null,
  op: (a: Tensor, b: Tensor) => Tensor,
): Tensor {
  const common = dtype ?? commonDtype(a, b);
  const left = operand(a, common);
  const right = operand(b, common);
  const out = op(left, right);
  if (left !== a) left.dispose();
  if (right !== b) right.dispose();
  return out;
}
