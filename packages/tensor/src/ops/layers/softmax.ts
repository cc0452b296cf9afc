// Log-softmax and softmax. Kernels work along the last dimension; another dimension is transposed there and back.
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { refuseOptions } from '../../checks/options.ts';
import { scope } from '../../core/context.ts';
import { checkedDim } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { recast } from '../elementwise/autocast.ts';
import { contiguous, inFloat32, needsFloat32OnCpu, requireFloat } from '../elementwise/convert.ts';
import { exp } from '../elementwise/unary.ts';
import { reshape, transpose } from '../shape/views.ts';

/** Computes the logarithm of softmax along `dim`, without overflow. */
export function logSoftmax(a: Tensor, dim?: number): Tensor;
export function logSoftmax(a: Tensor, dim = -1, extra?: unknown): Tensor {
  if (extra !== undefined) refuseOptions('logSoftmax', extra);
  const raised = recast('float32', [a], (wide) => logSoftmax(wide!, dim));
  if (raised) return raised;
  requireFloat('logSoftmax', a);
  if (a.rank === 0) return scope(() => reshape(logSoftmax(reshape(a, [1]), dim), []));
  const at = checkedDim('logSoftmax', dim, a.rank);
  if (needsFloat32OnCpu(a)) return inFloat32(a, (wide) => logSoftmax(wide, at));
  if (at !== a.rank - 1) return alongLast(a, at);
  const cols = a.shape[at]!;
  const rows = cols === 0 ? 0 : a.count / cols;
  const dense = contiguous(a);
  const out = empty(a.dtype, a.shape, a.device);
  kernels().logSoftmax({ out: out.strided, a: dense.strided }, { rows, cols });
  if (isRecording(dense)) {
    const target = dense.target!;
    const logProbs = out.strided;
    record('logSoftmax', out, [target], [out.storage], (grad) => {
      const into = target.begin();
      kernels().logSoftmaxGrad({ gradIn: into.dense, gradOut: grad.dense, out: logProbs }, { rows, cols });
      target.end(into);
    });
  }
  if (dense !== a) dense.dispose();
  return out;
}

function alongLast(a: Tensor, dim: number): Tensor {
  const turned = transpose(a, dim, -1);
  const logProbs = logSoftmax(turned);
  const out = transpose(logProbs, dim, -1);
  turned.dispose();
  logProbs.dispose();
  return out;
}

/** Computes exp a ÷ Σ exp a along `dim`: positive numbers that add up to 1. */
export function softmax(a: Tensor, dim?: number): Tensor;
export function softmax(a: Tensor, dim = -1, extra?: unknown): Tensor {
  if (extra !== undefined) refuseOptions('softmax', extra);
  const logProbs = logSoftmax(a, dim);
  const out = exp(logProbs);
  logProbs.dispose();
  return out;
}
