// The matrix product, and linear layers. Gradients of matrices go straight into their own memory: the kernel adds.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import { badLinear, badMatmul } from '../errors.ts';
import { countOf } from '../shape.ts';
import { empty, type Tensor } from '../tensor.ts';
import { requireFloat } from './convert.ts';

/** Matrix × matrix, matrix × vector, vector × matrix, or the dot product of two vectors. */
export function matmul(a: Tensor, b: Tensor): Tensor {
  requireFloat('matmul', a);
  requireFloat('matmul', b);
  const isRow = a.rank === 1;
  const isColumn = b.rank === 1;
  if ((!isRow && a.rank !== 2) || (!isColumn && b.rank !== 2)) throw badMatmul(a.shape, b.shape);
  const m = isRow ? 1 : a.shape[0]!;
  const k = a.shape[isRow ? 0 : 1]!;
  const n = isColumn ? 1 : b.shape[1]!;
  if (b.shape[0] !== k) throw badMatmul(a.shape, b.shape);
  const out = empty('float32', isRow ? (isColumn ? [] : [n]) : isColumn ? [m] : [m, n]);
  kernels().matmul(out.memory, a.memory, b.memory, m, n, k, false, false, false);
  if (!isRecording(a, b)) return out;
  const toA = a.target;
  const toB = b.target;
  const x = a.memory;
  const y = b.memory;
  return record('matmul', out, [toA, toB], [a.storage, b.storage], ({ memory: grad }) => {
    if (toB) {
      kernels().matmul(toB.open(), x, grad, k, n, m, true, false, toB.isFilled);
      toB.close();
    }
    if (toA) {
      kernels().matmul(toA.open(), grad, y, m, k, n, false, true, toA.isFilled);
      toA.close();
    }
  });
}

/**
 * x · wᵀ + b, with x [..., in], w [out, in] and b [out], if any. In backward the gradients of w and b are final
 * before that of x is computed, so that they can be sent while it is.
 */
export function linear(x: Tensor, w: Tensor, b: Tensor | null = null): Tensor {
  const outSize = w.shape[0]!;
  const inSize = w.shape[1]!;
  checkLinear(x, w, b);
  const rows = x.rank === 2 ? x.shape[0]! : countOf(x.shape.slice(0, -1));
  const shape = x.rank === 2 ? [rows, outSize] : [...x.shape.slice(0, -1), outSize];
  const out = empty('float32', shape);
  const k = kernels();
  k.matmul(out.memory, x.memory, w.memory, rows, outSize, inSize, false, true, false);
  if (b) k.binary('add', out.memory, out.memory, b.memory, [rows, outSize], [outSize, 1], [0, 1]);
  if (!isRecording(x, w, b)) return out;
  const toX = x.target;
  const toW = w.target;
  const toB = b?.target ?? null;
  const input = x.memory;
  const weight = w.memory;
  return record('linear', out, [toX, toW, toB], [x.storage, w.storage], ({ memory: grad }) => {
    if (toB) {
      const into = toB.begin();
      kernels().reduce('sum', into.memory, grad, 1, rows, outSize);
      toB.end(into);
    }
    if (toW) {
      kernels().matmul(toW.open(), grad, input, outSize, inSize, rows, true, false, toW.isFilled);
      toW.close();
    }
    if (toX) {
      kernels().matmul(toX.open(), grad, weight, rows, inSize, outSize, false, false, toX.isFilled);
      toX.close();
    }
  });
}

function checkLinear(x: Tensor, w: Tensor, b: Tensor | null): void {
  requireFloat('linear', x);
  requireFloat('linear', w);
  if (b) requireFloat('linear', b);
  const fits =
    w.rank === 2 &&
    x.rank > 0 &&
    x.shape[x.rank - 1] === w.shape[1] &&
    (b === null || (b.rank === 1 && b.shape[0] === w.shape[0]));
  if (!fits) throw badLinear(x.shape, w.shape, b?.shape ?? null);
}
