// Runs a computation on every matrix of batches of tensors, on the host and in float64, and records its gradient.
import { isRecording, record } from '../autograd/node.ts';
import { noGrad, scope } from '../core/context.ts';
import { allocate, type Storage } from '../core/memory/storage.ts';
import { transferred } from '../core/memory/transfer.ts';
import { broadcastShapes, countOf, type Shape } from '../core/shape.ts';
import { empty, type Tensor } from '../core/tensor.ts';
import { shareReduced } from '../ops/gradient.ts';
import { Matrix } from './dense/matrix.ts';

/** The results for the matrices of one batch entry. */
export interface Entry {
  /** The results; a vector or a number is a matrix of as many elements. */
  readonly outs: readonly Matrix[];
  /**
   * Returns the gradient of each input from the gradients of the results. It is called with the gradient of one result,
   * and zeros for the others, so it must be linear.
   */
  readonly backward: (grads: readonly Matrix[]) => readonly Matrix[];
}

/** Reads a tensor, broadcast to these leading sizes. */
function valuesOf(a: Tensor, batch: Shape): Float64Array {
  const shape = [...batch, ...a.shape.slice(-2)];
  return scope(() =>
    noGrad(() => {
      const wide = a.detach().expand(shape).to('float64').contiguous();
      return (wide.dataSync() as Float64Array).slice();
    }),
  );
}

const slice = (values: Float64Array, rows: number, cols: number, index: number): Matrix =>
  new Matrix(rows, cols, values.slice(index * rows * cols, (index + 1) * rows * cols));

/**
 * Calls `compute` with the matrices of each batch entry and its number. Returns tensors whose last dimensions are
 * `shapes`, in the dtype of the first input. Leading dimensions of the inputs are broadcast.
 */
export function batched(
  op: string,
  inputs: readonly Tensor[],
  shapes: readonly Shape[],
  compute: (matrices: readonly Matrix[], index: number) => Entry,
): Tensor[] {
  const { dtype } = inputs[0]!;
  const batch = inputs.map((a): Shape => a.shape.slice(0, -2)).reduce((a, b) => broadcastShapes(op, a, b));
  const values = inputs.map((a) => valuesOf(a, batch));
  const entries = Array.from({ length: countOf(batch) }, (_, index) =>
    compute(
      inputs.map(({ shape }, i) => slice(values[i]!, shape.at(-2)!, shape.at(-1)!, index)),
      index,
    ),
  );
  return shapes.map((own, k) => {
    const out = empty(dtype, [...batch, ...own]);
    const size = countOf(own);
    for (const [index, { outs }] of entries.entries())
      out.storage.memory.host.set(outs[k]!.data as never, index * size);
    if (!inputs.some((a) => isRecording(a))) return out;
    const targets = inputs.map(({ target }) => target);
    return record(op, out, targets, [], (grad) =>
      sendBack(inputs, batch, targets, gradsOf(grad, entries, k)),
    );
  });
}

/** Returns the gradients of the inputs for each batch entry, from the gradient of result number k. */
function gradsOf(grad: Storage, entries: readonly Entry[], k: number): readonly (readonly Matrix[])[] {
  const size = entries[0]?.outs[k]?.data.length ?? 0;
  const wide = transferred(grad.dense, [entries.length * size], 'float64', 'cpu');
  const values = (wide.memory.host as Float64Array).slice(0, entries.length * size);
  wide.release();
  return entries.map(({ outs, backward }, index) =>
    backward(
      outs.map((out, i) =>
        i === k ? slice(values, out.rows, out.cols, index) : new Matrix(out.rows, out.cols),
      ),
    ),
  );
}

function sendBack(
  inputs: readonly Tensor[],
  batch: Shape,
  targets: readonly Tensor['target'][],
  grads: readonly (readonly Matrix[])[],
): void {
  for (const [i, target] of targets.entries()) {
    if (target === null) continue;
    const input = inputs[i]!;
    const shape = [...batch, ...input.shape.slice(-2)];
    const own = allocate(input.dtype, countOf(shape), 'cpu');
    const size = countOf(input.shape.slice(-2));
    for (const [index, all] of grads.entries()) own.memory.host.set(all[i]!.data as never, index * size);
    shareReduced(target, own, shape, input.shape);
    own.release();
  }
}
