// Softmax in logarithms, along the last dimension; other dimensions are transposed there and back.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import { checkedDim } from '../shape.ts';
import { empty, type Tensor } from '../tensor.ts';
import { requireFloat } from './convert.ts';
import { transpose } from './movement.ts';
import { exp } from './unary.ts';

export function logSoftmax(a: Tensor, dim = -1): Tensor {
  requireFloat('logSoftmax', a);
  const at = checkedDim('logSoftmax', dim, a.rank);
  if (at !== a.rank - 1) return alongLast(a, at);
  const cols = a.shape[at]!;
  const rows = cols === 0 ? 0 : a.count / cols;
  const out = empty('float32', a.shape);
  kernels().logSoftmax(out.memory, a.memory, rows, cols);
  if (!isRecording(a)) return out;
  const target = a.target!;
  const logProbs = out.memory;
  return record('logSoftmax', out, [target], [out.storage], (grad) => {
    const into = target.begin();
    kernels().logSoftmaxGrad(into.memory, grad.memory, logProbs, rows, cols);
    target.end(into);
  });
}

function alongLast(a: Tensor, dim: number): Tensor {
  const turned = transpose(a, dim, -1);
  const logProbs = logSoftmax(turned);
  const out = transpose(logProbs, dim, -1);
  turned.dispose();
  logProbs.dispose();
  return out;
}

export function softmax(a: Tensor, dim = -1): Tensor {
  const logProbs = logSoftmax(a, dim);
  const out = exp(logProbs);
  logProbs.dispose();
  return out;
}
