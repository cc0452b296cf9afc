// Log-softmax and softmax. Kernels work along the last dimension; another dimension is transposed there and back.
import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { refuseOptions } from '../../checks/options.ts';
import { autocastDtype, scope } from '../../core/context.ts';
import { isFloat } from '../../core/dtype.ts';
import { withStrides } from '../../core/layout.ts';
import { allocate } from '../../core/memory/storage.ts';
import { checkedDim } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { recast } from '../elementwise/autocast.ts';
import {
  clone,
  contiguous,
  inFloat32,
  needsFloat32,
  needsFloat32OnCpu,
  requireFloat,
  requireTensor,
} from '../elementwise/convert.ts';
import { exp, neg } from '../elementwise/unary.ts';
import { reshape, transpose } from '../shape/views.ts';

/** Throws unless `a` has floats. As in PyTorch, tensors without elements may have any dtype. */
function requireFloats(op: string, a: Tensor): void {
  requireTensor(op, a);
  if (a.count > 0) requireFloat(op, a);
}

/** Returns the result of softmax or logSoftmax for integers, of which there are none. */
function ofNoIntegers(op: string, a: Tensor, dim: number): Tensor {
  checkedDim(op, dim, a.rank);
  return clone(a);
}

/** Computes the logarithm of softmax along `dim`, without overflow. */
export function logSoftmax(a: Tensor, dim?: number): Tensor;
export function logSoftmax(a: Tensor, dim = -1, extra?: unknown): Tensor {
  if (extra !== undefined) refuseOptions('logSoftmax', extra);
  const raised = recast('float32', [a], (wide) => logSoftmax(wide!, dim));
  if (raised) return raised;
  requireFloats('logSoftmax', a);
  if (!isFloat(a.dtype)) return ofNoIntegers('logSoftmax', a, dim);
  if (a.rank === 0) return scope(() => reshape(logSoftmax(reshape(a, [1]), dim), []));
  const at = checkedDim('logSoftmax', dim, a.rank);
  if (needsFloat32OnCpu(a)) return inFloat32(a, (wide) => logSoftmax(wide, at));
  if (at !== a.rank - 1) return alongLast(a, at, logSoftmax);
  const cols = a.shape[at]!;
  const rows = cols === 0 ? 0 : a.count / cols;
  const dense = contiguous(a);
  const out = empty(a.dtype, a.shape, a.device);
  kernels().logSoftmax({ out: out.strided, a: dense.strided }, { rows, cols });
  if (isRecording(dense)) {
    const target = dense.target!;
    const logProbs = out.strided;
    const { shape } = a;
    record('logSoftmax', out, [target], [out.storage], (grad, graph) => {
      if (graph) {
        const { grad: own } = graphOf(graph);
        const probs = graphOf(graph).result(logProbs, shape).exp();
        graphOf(graph).send(target, own.sub(probs.mul(own.sum(-1, true))));
        return;
      }
      const into = target.begin();
      kernels().logSoftmaxGrad({ gradIn: into.dense, gradOut: grad.dense, out: logProbs }, { rows, cols });
      target.end(into);
    });
  }
  if (dense !== a) dense.dispose();
  return out;
}

/** Computes `op`, which works along the last dimension, along `dim`. */
function alongLast(a: Tensor, dim: number, op: (turned: Tensor) => Tensor): Tensor {
  const turned = transpose(a, dim, -1);
  const result = op(turned);
  const out = transpose(result, dim, -1);
  turned.dispose();
  result.dispose();
  return out;
}

/** Computes exp a ÷ Σ exp a along `dim`, as exp of logSoftmax: numbers ≥ 0 that add up to 1, but for rounding. */
export function softmax(a: Tensor, dim?: number): Tensor;
export function softmax(a: Tensor, dim = -1, extra?: unknown): Tensor {
  if (extra !== undefined) refuseOptions('softmax', extra);
  requireFloats('softmax', a);
  if (!isFloat(a.dtype)) return ofNoIntegers('softmax', a, dim);
  if (needsFloat32(a) && a.rank > 0 && autocastDtype() === null) {
    const at = checkedDim('softmax', dim, a.rank);
    return at === a.rank - 1 ? halfSoftmax(a) : alongLast(a, at, halfSoftmax);
  }
  const logProbs = logSoftmax(a, a.rank === 0 ? dim : checkedDim('softmax', dim, a.rank));
  const out = exp(logProbs);
  logProbs.dispose();
  return out;
}

/**
 * Computes softmax along the last dimension of a tensor of 16 bits in float32, and rounds once: the exponential of a
 * logarithm that was rounded to 16 bits would be wrong by several percent where the logarithm is large. The gradient
 * reads the rounded result, as in PyTorch.
 */
function halfSoftmax(a: Tensor): Tensor {
  const { shape, count, device } = a;
  const cols = shape[a.rank - 1]!;
  const rows = cols === 0 ? 0 : count / cols;
  const [wide, logProbs] = [allocate('float32', count, device), allocate('float32', count, device)];
  const out = empty(a.dtype, shape, device);
  kernels().copy(shape, wide.dense, a.strided);
  kernels().logSoftmax({ out: logProbs.dense, a: wide.dense }, { rows, cols });
  kernels().map('exp', 'float32', [count], out.strided, logProbs.dense);
  wide.release();
  logProbs.release();
  if (!isRecording(a)) return out;
  const target = a.target!;
  const probs = out.strided;
  return record('softmax', out, [target], [out.storage], (grad, graph) => {
    if (graph) {
      const wide = graphOf(graph).result(probs, shape).to('float32');
      const own = graphOf(graph).grad.to('float32');
      graphOf(graph).send(target, own.sub(own.mul(wide).sum(-1, true)).mul(wide));
      return;
    }
    const whole = [rows, cols];
    const scaled = allocate('float32', count, device);
    const sums = allocate('float32', rows, device);
    const eachRow = withStrides(sums.dense, [1, 0]);
    kernels().map('mul', 'float32', whole, scaled.dense, grad.dense, probs);
    kernels().reduce('sum', whole, eachRow, scaled.dense);
    kernels().map('sub', 'float32', whole, scaled.dense, grad.dense, eachRow);
    const into = target.begin();
    kernels().map('mul', 'float32', whole, into.dense, scaled.dense, probs);
    target.end(into);
    scaled.release();
    sums.release();
  });
}

/** Computes softmax of −a along `dim`: the largest share belongs to the least element. */
export function softmin(a: Tensor, dim = -1): Tensor {
  requireFloats('softmin', a);
  return scope(() => softmax(neg(a), dim));
}
