// Shared by the gradients of elementwise ops: a gradient is computed in the shape of the output, then summed over the
// dimensions along which the input was broadcast.
import { type GradGraph, graphOf } from '../autograd/graph.ts';
import type { GradTarget } from '../autograd/target.ts';
import type { MapOp } from '../backends/declarations/names.ts';
import { kernels } from '../backends/index.ts';
import type { Input, Strided } from '../backends/operands.ts';
import type { DType } from '../core/dtype.ts';
import { withStrides } from '../core/layout.ts';
import { allocate, type Storage } from '../core/memory/storage.ts';
import { broadcastStrides, countOf, type Shape, sameShape } from '../core/shape.ts';
import type { Tensor } from '../core/tensor.ts';
import type { Device } from '../device/device.ts';

/** Runs elementwise kernels in one shape and dtype, or with `graph` the same operations on tensors. */
export class Calculation {
  readonly #temporaries: Storage[] = [];
  readonly graph: GradGraph | null;
  readonly dtype: DType;
  readonly shape: Shape;
  readonly device: Device;

  constructor(dtype: DType, shape: Shape, device: Device, graph: object | null = null) {
    this.graph = graph && graphOf(graph);
    this.dtype = dtype;
    this.shape = shape;
    this.device = device;
  }

  map(op: MapOp, out: Strided, a: Input, b?: Input, c?: Input): void {
    if (this.graph)
      this.graph.map(
        op,
        this.dtype,
        out,
        [a, b, c].filter((operand) => operand !== undefined),
      );
    else kernels().map(op, this.dtype, this.shape, out, a, b, c);
  }

  /** Returns memory that lives until done(). */
  temporary(): Strided {
    if (this.graph) return { ...nowhere };
    const storage = allocate(this.dtype, countOf(this.shape), this.device);
    this.#temporaries.push(storage);
    return storage.dense;
  }

  done(): void {
    for (const storage of this.#temporaries) storage.release();
    this.#temporaries.length = 0;
  }
}

/** Sends `grad`, dense in `shape`, to an input that was broadcast from `inputShape`. */
export function shareReduced(target: GradTarget, grad: Storage, shape: Shape, inputShape: Shape): void {
  if (sameShape(shape, inputShape)) {
    target.share(grad);
    return;
  }
  const into = target.begin();
  const out = withStrides(into.dense, broadcastStrides(inputShape, null, shape));
  kernels().reduce('sum', shape, out, grad.dense);
  target.end(into);
}

/** Placeholder for memory where a calculation works with tensors. */
const nowhere: Strided = { memory: null as never, offset: 0, strides: null };

/** Returns an operand that was broadcast from `inputShape` to `shape` as it was before. */
export function unstretched({ memory, offset, strides }: Strided, shape: Shape, inputShape: Shape): Strided {
  if (strides === null || sameShape(shape, inputShape)) return { memory, offset, strides };
  return { memory, offset, strides: strides.slice(shape.length - inputShape.length) };
}

/**
 * Computes a contribution in the calculation's shape by `write`, and sends it to an input of `inputShape`. Releases the
 * calculation's temporaries.
 */
export function contribute(
  target: GradTarget,
  calculation: Calculation,
  inputShape: Shape,
  write: (into: Strided) => void,
): void {
  const { dtype, shape, device, graph } = calculation;
  if (graph) {
    const into = { ...nowhere };
    write(into);
    graph.send(target, (graph.valueOf(into) as Tensor).expand(shape), inputShape);
    return;
  }
  const isDirect = sameShape(shape, inputShape);
  const into = isDirect ? target.begin() : allocate(dtype, countOf(shape), device);
  write(into.dense);
  calculation.done();
  if (isDirect) {
    target.end(into);
    return;
  }
  shareReduced(target, into, shape, inputShape);
  into.release();
}
