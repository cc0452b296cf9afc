// A fully connected layer in one op.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import { badLinear, mixedDtypes } from '../errors.ts';
import { withStrides } from '../layout.ts';
import { rowsOf, withLast } from '../shape.ts';
import { empty, type Tensor } from '../tensor.ts';
import { recast } from './autocast.ts';
import { contiguous, needsFloat32, requireFloat, to } from './convert.ts';
import { jointDevice } from './joint-device.ts';
import { denseMatrices, type Matrices, matricesOf, multiply, turned } from './matmul.ts';

/**
 * x · wᵀ + b, with x [..., in], w [out, in] and b [out], if any. In backward the gradients of w and b are final
 * before that of x is computed, so that they can be sent while it is.
 */
export function linear(x: Tensor, w: Tensor, b: Tensor | null = null): Tensor {
  const lowered = recast('low', [x, w, b], (...operands) => linear(operands[0]!, operands[1]!, operands[2]));
  if (lowered) return lowered;
  checkLinear(x, w, b);
  if (needsFloat32(x)) return linearInFloat32(x, w, b);
  const [outSize, inSize] = w.shape as readonly [number, number];
  const dense = contiguous(x);
  const weights = contiguous(w);
  const shape = withLast(x.shape, outSize);
  const rows = rowsOf(x.shape);
  const out = empty(x.dtype, shape, jointDevice('linear', x, w, b));
  const { dtype } = out;
  const input = denseMatrices(dense.strided, [rows, inSize]);
  const weight = matricesOf(weights, [])!;
  multiply([], out.strided, input, turned(weight), rows, outSize, inSize, false);
  if (b) {
    const row = withStrides(b.strided, [0, b.strides[0]!]);
    kernels().map('add', dtype, [rows, outSize], out.strided, out.strided, row);
  }
  if (isRecording(dense, weights, b)) recorded(out, dense, weights, b, input, weight);
  if (dense !== x) dense.dispose();
  if (weights !== w) weights.dispose();
  return out;
}

// A function of its own: what its closure captures is then only allocated when it runs.
function recorded(
  out: Tensor,
  x: Tensor,
  w: Tensor,
  b: Tensor | null,
  input: Matrices,
  weight: Matrices,
): void {
  const [outSize, inSize] = w.shape as readonly [number, number];
  const rows = rowsOf(x.shape);
  const toX = x.target;
  const toW = w.target;
  const toB = b === null ? null : b.target;
  record('linear', out, [toX, toW, toB], [x.storage, w.storage], (grad) => {
    const g = denseMatrices(grad.dense, [rows, outSize]);
    if (toB) {
      const into = toB.begin();
      kernels().reduce('sum', [rows, outSize], withStrides(into.dense, [0, 1]), grad.dense);
      toB.end(into);
    }
    if (toW) {
      multiply([], toW.open(), turned(g), input, outSize, inSize, rows, toW.isFilled);
      toW.close();
    }
    if (toX) {
      multiply([], toX.open(), g, weight, rows, inSize, outSize, toX.isFilled);
      toX.close();
    }
  });
}

function linearInFloat32(x: Tensor, w: Tensor, b: Tensor | null): Tensor {
  const wide = [x, w, ...(b ? [b] : [])].map((tensor) => to(tensor, 'float32'));
  const result = linear(wide[0]!, wide[1]!, wide[2] ?? null);
  const out = to(result, x.dtype);
  for (const tensor of [...wide, result]) tensor.dispose();
  return out;
}

function checkLinear(x: Tensor, w: Tensor, b: Tensor | null): void {
  requireFloat('linear', x);
  if (w.dtype !== x.dtype) throw mixedDtypes('linear', x.dtype, w.dtype);
  if (b !== null && b.dtype !== x.dtype) throw mixedDtypes('linear', x.dtype, b.dtype);
  const fits =
    w.rank === 2 &&
    x.rank > 0 &&
    x.shape[x.rank - 1] === w.shape[1] &&
    (b === null || (b.rank === 1 && b.shape[0] === w.shape[0]));
  if (!fits) throw badLinear(x.shape, w.shape, b?.shape ?? null);
}
