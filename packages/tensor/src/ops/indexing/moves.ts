// The two kernels by index with their gradients: one reads elements, the other writes them. Each is the gradient of the
// other, so they are in one file.
import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import type { ScatterOp } from '../../backends/declarations/names.ts';
import { kernels } from '../../backends/index.ts';
import type { LookupSizes } from '../../backends/kernels.ts';
import type { Strided } from '../../backends/operands.ts';
import { zeros } from '../../core/creation.ts';
import { allocate, type Storage } from '../../core/memory/storage.ts';
import { countOf, type Shape, sameShape, stridesOf } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { contiguous } from '../elementwise/convert.ts';
import { jointDevice } from '../joint-device.ts';
import { narrow } from '../shape/views.ts';

/** Looks `index` up in `a`, which is dense. Backward adds the gradient to the elements that were read. */
export function lookedUp(name: string, a: Tensor, index: Tensor, shape: Shape, sizes: LookupSizes): Tensor {
  const out = empty(a.dtype, shape, jointDevice(name, a, index));
  kernels().lookup({ out: out.strided, a: a.strided, index: index.strided }, sizes);
  if (!isRecording(a)) return out;
  const target = a.target!;
  const positions = index.strided;
  const { shape: whole } = a;
  return record(name, out, [target], [index.storage], (grad, graph) => {
    if (graph) {
      const own = graphOf(graph);
      const zero = zeros(whole, { dtype: own.grad.dtype, device: own.grad.device });
      const ready = own.saved(positions, index.shape, null);
      own.send(target, written(name, 'add', zero, contiguous(own.grad), ready, whole, sizes));
      return;
    }
    const into = target.open();
    if (!target.isFilled) kernels().copy([target.count], into, 0);
    kernels().scatter({ out: into, a: grad.dense, index: positions }, { ...sizes, op: 'add' });
    target.close();
  });
}

/** Where a dense tensor of this shape is written: only its part with the shape `part` may change. */
interface Target {
  readonly shape: Shape;
  readonly part: Shape;
  readonly sizes: LookupSizes;
}

/** The elements of a part of a dense tensor. */
const within = ({ memory, offset }: Strided, { shape }: Target): Strided => ({
  memory,
  offset,
  strides: stridesOf(shape),
});

/** Calls `use` with dense memory that has the part of `whole`, which is dense: its own where the part is all of it. */
function withPart(whole: Storage, target: Target, use: (part: Storage) => void): void {
  const isWhole = sameShape(target.part, target.shape);
  const part = isWhole
    ? whole.retain()
    : allocate(whole.memory.dtype, countOf(target.part), whole.memory.device);
  if (!isWhole) kernels().copy(target.part, part.dense, within(whole.dense, target));
  use(part);
  part.release();
}

/** Writes `source`, which is dense, to dense memory. */
function write(op: ScatterOp, out: Storage, source: Strided, index: Strided, target: Target): void {
  withPart(out, target, (part) => {
    kernels().scatter({ out: part.dense, a: source, index }, { ...target.sizes, op });
    if (part !== out) kernels().copy(target.part, within(out.dense, target), part.dense);
  });
}

/**
 * Computes scatter and similar operations. `source` and `positions` are dense. Only 'add' and 'replace' have a
 * gradient: call it for others only where nothing is recorded.
 */
export function written(
  name: string,
  op: ScatterOp,
  a: Tensor,
  source: Tensor,
  positions: Tensor,
  part: Shape,
  sizes: LookupSizes,
): Tensor {
  const out = empty(a.dtype, a.shape, jointDevice(name, a, positions, source));
  const target: Target = { shape: a.shape, part, sizes };
  kernels().copy(a.shape, out.strided, a.strided);
  write(op, out.storage, source.strided, positions.strided, target);
  if (!isRecording(a, source)) return out;
  if (op !== 'add' && op !== 'replace') throw new Error(`${name}: the kernel scatter ${op} has no gradient`);
  const [toA, toSource] = [a.target, source.target];
  const index = positions.strided;
  const { count } = source;
  const { shape: sourceShape } = source;
  return record(name, out, [toA, toSource], [positions.storage], (grad, graph) => {
    if (graph) {
      const own = graphOf(graph);
      const { dtype, device } = own.grad;
      const ready = own.saved(index, [positions.count], null);
      const nothing = zeros(sourceShape, { dtype, device });
      if (toA)
        own.send(toA, op === 'add' ? own.grad : written(name, op, own.grad, nothing, ready, part, sizes));
      if (toSource) {
        let whole = own.grad;
        for (const [d, size] of part.entries()) whole = narrow(whole, d, 0, size);
        own.send(toSource, lookedUp(name, contiguous(whole), ready, sourceShape, sizes));
      }
      return;
    }
    if (toA && op === 'add') toA.share(grad);
    else if (toA) {
      const into = toA.begin();
      kernels().copy([toA.count], into.dense, grad.dense);
      const zeros = allocate(into.memory.dtype, count, into.memory.device);
      kernels().copy([count], zeros.dense, 0);
      write('replace', into, zeros.dense, index, target);
      zeros.release();
      toA.end(into);
    }
    if (!toSource) return;
    const into = toSource.begin();
    withPart(grad, target, (own) => kernels().lookup({ out: into.dense, a: own.dense, index }, sizes));
    toSource.end(into);
  });
}
