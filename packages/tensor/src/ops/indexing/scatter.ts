// Writes to elements by index: adds to them, or replaces them. The indices have the rules of lookup.ts.
import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import type { ScatterOp } from '../../backends/declarations/names.ts';
import { kernels } from '../../backends/index.ts';
import { checkFits } from '../../checks/arguments.ts';
import { noGrad, scope } from '../../core/context.ts';
import { full, zeros } from '../../core/creation.ts';
import { checkedDim } from '../../core/shape.ts';
import type { Operand, Tensor } from '../../core/tensor.ts';
import { mixedDtypes } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { clone, requireOperand, requireTensor } from '../elementwise/convert.ts';
import { reshape } from '../shape/views.ts';
import { asRow, denseFitted, disposeCopies, fitted, prepared, sizesOf } from './lookup.ts';
import { written } from './moves.ts';

/** Returns a copy of `a`, for an index without elements. */
function withoutAny(name: string, a: Tensor, source: Tensor): Tensor {
  const out = noGrad(() => clone(a));
  if (!isRecording(a, source)) return out;
  const [toA, toSource] = [a.target, source.target];
  const { shape } = source;
  return record(name, out, [toA, toSource], [], (grad, graph) => {
    if (graph) {
      const { grad: own } = graphOf(graph);
      graphOf(graph).send(toA, own);
      if (toSource) graphOf(graph).send(toSource, zeros(shape, { dtype: own.dtype, device: own.device }));
      return;
    }
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
  const positions = prepared(name, index, a.shape[at]!);
  const dense = denseFitted(name, source, null, index);
  const sizes = sizesOf(shape, at, index.shape[at]!, true);
  const out = written(name, op, a, dense, positions, shape, sizes);
  disposeCopies([positions, dense], [index, source]);
  return out;
}

/**
 * Adds elements of `source` to the elements of a copy of `a` that `index` names along `dim`. The index may be smaller
 * than the source, and than `a` in the other dimensions: then the first elements are read and changed.
 */
export function scatterAdd(a: Tensor, dim: number, index: Tensor, source: Tensor): Tensor {
  const raised = recast('widest', [a, source], (wide, from) => scatterAdd(wide!, dim, index, from!));
  if (raised) return raised;
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
