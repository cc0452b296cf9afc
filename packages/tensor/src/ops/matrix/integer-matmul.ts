// Matrix products of integers, which wrap around as PyTorch's do. They have no kernel: large results are summed in
// place, one column of `a` and one row of `b` at a time; small ones from products that are adjacent in memory.
import { kernels } from '../../backends/index.ts';
import type { Strided } from '../../backends/operands.ts';
import { withStrides } from '../../core/layout.ts';
import { allocate } from '../../core/memory/storage.ts';
import { broadcastShapes, broadcastStrides, countOf, type Shape, stridesOf } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { jointDevice } from '../joint-device.ts';

/** Minimum number of elements of a result for which a kernel call per step of the inner dimension costs little. */
const manyElements = 2 ** 12;
/** Maximum number of products in memory at a time. */
const mostProducts = 2 ** 16;

/** Computes [..., m, k] · [..., k, n] of one integer dtype. Leading dimensions are broadcast. */
export function integerMatmul(a: Tensor, b: Tensor): Tensor {
  const batch = broadcastShapes('matmul', a.shape.slice(0, -2), b.shape.slice(0, -2));
  const [m, k] = a.shape.slice(-2) as [number, number];
  const n = b.shape[b.rank - 1]!;
  const shape = [...batch, m, n];
  const out = empty(a.dtype, shape, jointDevice('matmul', a, b));
  const [aRow, aInner] = a.strides.slice(-2) as [number, number];
  const [bInner, bCol] = b.strides.slice(-2) as [number, number];
  const left = [...broadcastStrides(a.shape.slice(0, -2), a.strides.slice(0, -2), batch), aRow, 0];
  const right = [...broadcastStrides(b.shape.slice(0, -2), b.strides.slice(0, -2), batch), 0, bCol];
  const x = { ...a.strided, strides: left };
  const y = { ...b.strided, strides: right };
  if (k === 0 || out.count === 0) kernels().copy(shape, out.strided, 0);
  else if (out.count >= manyElements) sumSteps(shape, out, x, y, [aInner, bInner], k);
  else sumProducts(shape, out, x, y, [aInner, bInner], k);
  return out;
}

type Steps = readonly [a: number, b: number];

const from = ({ memory, offset, strides }: Strided, start: number): Strided => ({
  memory,
  offset: offset + start,
  strides,
});

function sumSteps(shape: Shape, out: Tensor, x: Strided, y: Strided, [aStep, bStep]: Steps, k: number): void {
  for (let i = 0; i < k; i++) {
    const sum = i === 0 ? 0 : out.strided;
    kernels().map('mulAdd', out.dtype, shape, out.strided, from(x, i * aStep), from(y, i * bStep), sum);
  }
}

function sumProducts(
  shape: Shape,
  out: Tensor,
  x: Strided,
  y: Strided,
  [aStep, bStep]: Steps,
  k: number,
): void {
  const most = Math.max(1, Math.floor(mostProducts / out.count));
  const products = allocate(out.dtype, out.count * Math.min(k, most), out.device);
  const sums = allocate('int64', out.count, out.device);
  for (let i = 0; i < k; i += most) {
    const size = Math.min(most, k - i);
    const whole = [...shape, size];
    const [left, right] = [from(x, i * aStep), from(y, i * bStep)];
    const operand = (strided: Strided, step: number): Strided =>
      withStrides(strided, [...strided.strides!, step]);
    kernels().map('mul', out.dtype, whole, products.dense, operand(left, aStep), operand(right, bStep));
    // Sums in int64, whose lower bits are the sum in any other integer dtype.
    kernels().reduce('sum', whole, withStrides(sums.dense, [...stridesOf(shape), 0]), products.dense);
    kernels().map('add', out.dtype, [countOf(shape)], out.strided, sums.dense, i === 0 ? 0 : out.strided);
  }
  products.release();
  sums.release();
}
