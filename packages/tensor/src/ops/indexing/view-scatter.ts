// Copies of a tensor in which one view has other elements: the gradient of a view, as functions.
import { customFunction } from '../../autograd/custom.ts';
import { checkInteger } from '../../checks/arguments.ts';
import { scope } from '../../core/context.ts';
import { zerosLike } from '../../core/creation.ts';
import { checkedDim, sameShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { differentShapes } from '../../errors.ts';
import { clone, requireOperand, requireTensor, to } from '../elementwise/convert.ts';
import { copy_ } from '../elementwise/in-place.ts';
import { diagonal } from '../matrix/diagonals.ts';
import { select } from '../shape/views.ts';
import { at } from './at.ts';

/** Returns a copy of `a` whose part `viewOf(a)` has the elements of `source`. */
function withView(op: string, a: Tensor, source: Tensor, viewOf: (whole: Tensor) => Tensor): Tensor {
  requireTensor(op, a);
  requireOperand(op, 'the source', source);
  return scope(() => {
    const { shape } = viewOf(a.detach());
    if (!sameShape(source.shape, shape)) throw differentShapes(op, source.shape, shape);
    return replaced(op, viewOf)(a, to(source, a.dtype));
  });
}

const replaced = (name: string, viewOf: (whole: Tensor) => Tensor): ((a: Tensor, source: Tensor) => Tensor) =>
  customFunction({
    name,
    forward: (_, a: Tensor, source: Tensor) => {
      const out = clone(a);
      copy_(viewOf(out), source);
      return out;
    },
    backward: ({ needsGrad }, grad) => {
      const own = viewOf(grad);
      return [
        needsGrad[0] ? replaced(name, viewOf)(grad, zerosLike(own)) : null,
        needsGrad[1] ? clone(own) : null,
      ];
    },
  });

/** Returns a copy of `a` whose slice `index` of `dim` has the elements of `source`. */
export function selectScatter(a: Tensor, source: Tensor, dim: number, index: number): Tensor {
  requireTensor('selectScatter', a);
  checkInteger('selectScatter', 'index', index);
  const along = checkedDim('selectScatter', dim, a.rank);
  return withView('selectScatter', a, source, (whole) => select(whole, along, index));
}

/**
 * Returns a copy of `a` whose elements from `start` to `end` along `dim`, each `step`-th one, are those of `source`.
 * Both ends have the rules of ranges of at(); null means the beginning or the end.
 */
export function sliceScatter(
  a: Tensor,
  source: Tensor,
  dim = 0,
  start: number | null = null,
  end: number | null = null,
  step = 1,
): Tensor {
  requireTensor('sliceScatter', a);
  const along = checkedDim('sliceScatter', dim, a.rank);
  const before = Array.from({ length: along }, () => ':' as const);
  return withView('sliceScatter', a, source, (whole) => at(whole, ...before, [start, end, step]));
}

/** Returns a copy of `a` whose diagonal(offset, dim1, dim2) has the elements of `source`. */
export function diagonalScatter(a: Tensor, source: Tensor, offset = 0, dim1 = 0, dim2 = 1): Tensor {
  return withView('diagonalScatter', a, source, (whole) => diagonal(whole, offset, dim1, dim2));
}
