// Shared by the gradients of elementwise ops: a gradient is computed in the shape of the output, then summed over the
// dimensions along which the input was broadcast.
import type { GradTarget } from '../autograd/target.ts';
import type { MapOp } from '../backends/declarations/names.ts';
import { kernels } from '../backends/index.ts';
import type { Input, Strided } from '../backends/operands.ts';
import type { DType } from '../core/dtype.ts';
import { withStrides } from '../core/layout.ts';
import { allocate, type Storage } from '../core/memory/storage.ts';
import { broadcastStrides, countOf, type Shape, sameShape } from '../core/shape.ts';
import type { Device } from '../device/device.ts';

/** Runs elementwise kernels in one shape and dtype. Its temporaries live until done(). */
export class Calculation {
  readonly #temporaries: Storage[] = [];
  readonly dtype: DType;
  readonly shape: Shape;
  readonly device: Device;

  constructor(dtype: DType, shape: Shape, device: Device) {
    this.dtype = dtype;
    this.shape = shape;
    this.device = device;
  }

  map(op: MapOp, out: Strided, a: Input, b?: Input, c?: Input): void {
    kernels().map(op, this.dtype, this.shape, out, a, b, c);
  }

  temporary(): Strided {
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
  const { dtype, shape, device } = calculation;
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
