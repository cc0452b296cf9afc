// Writes to elements by index: adds to them, or replaces them. The indices have the rules of lookup.ts.
import { isRecording, record } from '../../autograd/node.ts';
import type { ScatterOp } from '../../backends/declarations/names.ts';
import { kernels } from '../../backends/index.ts';
import type { LookupSizes } from '../../backends/kernels.ts';
import type { Strided } from '../../backends/operands.ts';
import { checkFits } from '../../checks/arguments.ts';
import { noGrad, scope } from '../../core/context.ts';
import { full } from '../../core/creation.ts';
import { allocate, type Storage } from '../../core/memory/storage.ts';
import { checkedDim, countOf, type Shape, sameShape, stridesOf } from '../../core/shape.ts';
import { empty, type Operand, type Tensor } from '../../core/tensor.ts';
import { mixedDtypes } from '../../errors.ts';
import { clone, requireOperand, requireTensor } from '../elementwise/convert.ts';
import { jointDevice } from '../joint-device.ts';
import { reshape } from '../shape/views.ts';
import { asRow, denseFitted, disposeCopies, fitted, prepared, sizesOf } from './lookup.ts';

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
 * Computes scatter and what is like it. `source` and `places` are dense. Only 'add' and 'replace' have a gradient: call
 * it for others where nothing is recorded.
 */
export function written(
  name: string,
  op: ScatterOp,
  a: Tensor,
  source: Tensor,
  places: Tensor,
  part: Shape,
  sizes: LookupSizes,
): Tensor {
  const out = empty(a.dtype, a.shape, jointDevice(name, a, places, source));
  const target: Target = { shape: a.shape, part, sizes };
  kernels().copy(a.shape, out.strided, a.strided);
  write(op, out.storage, source.strided, places.strided, target);
  if (!isRecording(a, source)) return out;
  const [toA, toSource] = [a.target, source.target];
  const index = places.strided;
  const { count } = source;
  return record(name, out, [toA, toSource], [places.storage], (grad) => {
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

/** Returns a copy of `a`, for an index without elements. */
function withoutAny(name: string, a: Tensor, source: Tensor): Tensor {
  const out = noGrad(() => clone(a));
  if (!isRecording(a, source)) return out;
  const [toA, toSource] = [a.target, source.target];
  return record(name, out, [toA, toSource], [], (grad) => {
    if (toA) toA.share(grad);
    if (!toSource) return;
    const into = toSource.begin();
    kernels().copy([toSource.count], into.dense, 0);
    toSource.end(into);
  });
}

function along(name: string, op: ScatterOp, a: Tensor, dim: number, index: Tensor, source: Tensor): Tensor {
  if (source.dtype !== a.dtype) throw mixedDtypes(name, a.dtype, source.dtype);
  if (a.rank === 0 || index.rank === 0 || source.rank === 0)
    return scope(() => reshape(along(name, op, asRow(a), dim, asRow(index), asRow(source)), a.shape));
  const at = checkedDim(name, dim, a.rank);
  if (index.count === 0) return withoutAny(name, a, source);
  const part = fitted(name, a, at, index);
  const shape = part.shape;
  if (part !== a) part.dispose();
  const places = prepared(name, index, a.shape[at]!);
  const dense = denseFitted(name, source, null, index);
  const sizes = sizesOf(shape, at, index.shape[at]!, true);
  const out = written(name, op, a, dense, places, shape, sizes);
  disposeCopies([places, dense], [index, source]);
  return out;
}

/**
 * Adds elements of `source` to the elements of a copy of `a` that `index` names along `dim`. The index may be smaller
 * than the source, and than `a` in the other dimensions: then the first elements are read and changed.
 */
export function scatterAdd(a: Tensor, dim: number, index: Tensor, source: Tensor): Tensor {
  requireTensor('scatterAdd', a);
  requireTensor('scatterAdd', index);
  requireTensor('scatterAdd', source);
  return along('scatterAdd', 'add', a, dim, index, source);
}

/**
 * Returns a copy of `a` in which elements of `source`, a tensor or a number, replace those that `index` names along
 * `dim`: for dim 0, out[index[i][j]][j] = source[i][j]. Shapes have the rules of scatterAdd(). If an element is named
 * several times, the last one stays; each of them gets the gradient, as in PyTorch.
 */
export function scatter(a: Tensor, dim: number, index: Tensor, source: Operand): Tensor {
  requireTensor('scatter', a);
  requireTensor('scatter', index);
  if (typeof source !== 'number') {
    requireOperand('scatter', 'the source', source);
    return along('scatter', 'replace', a, dim, index, source);
  }
  checkFits('scatter', source, a.dtype);
  const { dtype, device } = a;
  return scope(() =>
    along('scatter', 'replace', a, dim, index, full(index.shape, source, { dtype, device })),
  );
}
