// Dropout. Which elements are dropped follows from a position in the random stream, so backward draws the same ones
// again and no mask is stored.
import { isRecording, record } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import { badOption } from '../errors.ts';
import type { Stream } from '../kernels.ts';
import { defaultGenerator, type Generator } from '../random.ts';
import { empty, type Tensor } from '../tensor.ts';
import { mul } from './binary.ts';
import { contiguous, inFloat32, needsFloat32OnCpu, requireFloat } from './convert.ts';

export interface DropoutOptions {
  /** False: the tensor is returned as it is. Default true. */
  readonly training?: boolean;
  /** Default: the generator that manualSeed seeds. */
  readonly generator?: Generator;
}

/** Internal: throws unless p is a probability. */
export function checkProbability(what: string, p: number): void {
  if (!(p >= 0 && p <= 1)) throw badOption(what, 'a probability from 0 to 1', p);
}

/** Makes each element 0 with probability p and divides the others by 1 − p. */
export function dropout(x: Tensor, p = 0.5, options: DropoutOptions = {}): Tensor {
  requireFloat('dropout', x);
  checkProbability('dropout: p', p);
  if (p === 0 || options.training === false) return x;
  if (p === 1) return mul(x, 0);
  const stream = (options.generator ?? defaultGenerator()).take(x.count);
  return needsFloat32OnCpu(x) ? inFloat32(x, (wide) => dropped(wide, p, stream)) : dropped(x, p, stream);
}

function dropped(x: Tensor, p: number, stream: Stream): Tensor {
  const { count } = x;
  const dense = contiguous(x);
  const out = empty(x.dtype, x.shape, x.device);
  kernels().dropout(out.strided, dense.strided, count, p, stream);
  if (isRecording(dense)) {
    const target = dense.target!;
    record('dropout', out, [target], [], (grad) => {
      const into = target.begin();
      kernels().dropout(into.dense, grad.dense, count, p, stream);
      target.end(into);
    });
  }
  if (dense !== x) dense.dispose();
  return out;
}
