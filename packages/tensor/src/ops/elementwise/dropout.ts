// Dropout. A position in the random stream decides which elements are dropped, so backward draws the same numbers again
// and no mask is stored.
import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import type { Stream } from '../../backends/operands.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { aGenerator, checkValue, flag, probability } from '../../checks/value-checks.ts';
import { empty, Tensor } from '../../core/tensor.ts';
import { notATensor } from '../../errors.ts';
import { defaultGenerator, type Generator } from '../../random/random.ts';
import { logicalAnd, mul } from './binary.ts';
import { contiguous, inFloat32, needsFloat32OnCpu, requireFloat } from './convert.ts';

/** Options of dropout(). */
export interface DropoutOptions {
  /** False: the tensor is returned as it is. Default true. */
  readonly training?: boolean;
  /** Default: the generator that manualSeed seeds. */
  readonly generator?: Generator;
}

export const dropoutOptions = optionChecks<DropoutOptions>({ training: flag, generator: aGenerator });

/** Makes each element 0 with probability p and divides the others by 1 − p. If p is 0, returns the tensor as it is. */
export function dropout(x: Tensor, p = 0.5, options: DropoutOptions = {}): Tensor {
  if (!(x instanceof Tensor)) throw notATensor('dropout', x);
  checkValue('dropout: p', p, probability);
  checkOptions('dropout', options, dropoutOptions);
  if (p === 0 || options.training === false) return x;
  if (p === 1) return allDropped(x);
  requireFloat('dropout', x);
  const stream = (options.generator ?? defaultGenerator()).take(x.count);
  return needsFloat32OnCpu(x) ? inFloat32(x, (wide) => dropped(wide, p, stream)) : dropped(x, p, stream);
}

/** Returns the result of dropout with p = 1, of any dtype. NaN and infinities become NaN. */
export const allDropped = (x: Tensor): Tensor => (x.dtype === 'bool' ? logicalAnd(x, 0) : mul(x, 0));

/** Drops the elements that words of `stream` choose, the first word for the first element. */
export function dropped(x: Tensor, p: number, stream: Stream): Tensor {
  const { count } = x;
  const dense = contiguous(x);
  const out = empty(x.dtype, x.shape, x.device);
  kernels().dropout({ out: out.strided, a: dense.strided }, { count, p, stream });
  if (isRecording(dense)) {
    const target = dense.target!;
    record('dropout', out, [target], [], (grad, graph) => {
      if (graph) {
        graphOf(graph).send(target, dropped(graphOf(graph).grad, p, stream));
        return;
      }
      const into = target.begin();
      kernels().dropout({ out: into.dense, a: grad.dense }, { count, p, stream });
      target.end(into);
    });
  }
  if (dense !== x) dense.dispose();
  return out;
}
