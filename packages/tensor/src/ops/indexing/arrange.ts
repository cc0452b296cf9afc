// Brings the dimensions that index tensors replace together, so that a kernel sees [outer, size, inner].
import type { LookupSizes } from '../../backends/kernels.ts';
import { countOf, type Shape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { permute } from '../shape/views.ts';
import type { TensorIndex } from './index-list.ts';
import { joinedPositions } from './positions.ts';

export interface Arrangement {
  /** The tensor, with the indexed dimensions beside each other. A view. */
  readonly moved: Tensor;
  /** int64, the positions along the indexed dimensions, which count as one. */
  readonly positions: Tensor;
  readonly sizes: LookupSizes;
  /** The shape of the indexed elements: the shape of the index tensors replaces the indexed dimensions. */
  readonly shape: Shape;
}

/**
 * Arranges a view for its index tensors. As in PyTorch, the shape of the indices replaces the indexed dimensions if
 * these are adjacent, and comes first if not. All tensors belong to the innermost scope.
 */
export function arranged(op: string, view: Tensor, tensorIndices: readonly TensorIndex[]): Arrangement {
  const first = tensorIndices[0]!;
  const areAdjacent = tensorIndices.every(
    ({ dim }, i) => i === 0 || dim === tensorIndices[i - 1]!.dim + tensorIndices[i - 1]!.span,
  );
  const indexed = tensorIndices.flatMap(({ dim, span }) => Array.from({ length: span }, (_, d) => dim + d));
  const others = view.shape.map((_, d) => d).filter((d) => !indexed.includes(d));
  const before = areAdjacent ? others.filter((d) => d < first.dim) : [];
  const after = others.slice(before.length);
  const order = [...before, ...indexed, ...after];
  const moved = order.every((dim, d) => dim === d) ? view : permute(view, order);
  const positions = joinedPositions(op, tensorIndices);
  const shapeOf = (dims: readonly number[]): Shape => dims.map((d) => view.shape[d]!);
  return {
    moved,
    positions,
    sizes: {
      outer: countOf(shapeOf(before)),
      count: positions.count,
      size: countOf(shapeOf(indexed)),
      inner: countOf(shapeOf(after)),
      perElement: false,
    },
    shape: [...shapeOf(before), ...positions.shape, ...shapeOf(after)],
  };
}
