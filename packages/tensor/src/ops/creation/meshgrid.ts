// Grids of coordinates.

import { notTensors } from '../../checks/argument-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { oneOf } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { Tensor } from '../../core/tensor.ts';
import { badOption, mixedDtypes, needsRank } from '../../errors.ts';
import { jointDevice } from '../joint-device.ts';
import { expand, reshape, transpose } from '../shape/views.ts';

/** Options of meshgrid(). */
export interface MeshgridOptions {
  /** 'ij' (default): tensor i varies along dimension i; 'xy': the first two dimensions are swapped. */
  readonly indexing?: 'ij' | 'xy';
}

const meshgridOptions = optionChecks<MeshgridOptions>({ indexing: oneOf('ij', 'xy') });

/**
 * Returns for each of the tensors, [n] or without dimensions, its values at all points of the grid that the tensors
 * span: views of the shape [n0, n1, …]. All have one dtype.
 */
export function meshgrid(tensors: readonly Tensor[], options: MeshgridOptions = {}): Tensor[] {
  const op = 'meshgrid';
  const areTensors = Array.isArray(tensors) && tensors.every((tensor) => tensor instanceof Tensor);
  if (!areTensors) throw notTensors(op, tensors);
  checkOptions(op, options, meshgridOptions);
  const [first] = tensors;
  if (first === undefined) throw badOption(`${op}: tensors`, 'at least one', 'none');
  for (const tensor of tensors) {
    if (tensor.rank > 1) throw needsRank(op, '0 or 1', tensor.shape);
    if (tensor.dtype !== first.dtype) throw mixedDtypes(op, first.dtype, tensor.dtype);
    jointDevice(op, first, tensor);
  }
  const shape = tensors.map(({ count }) => count);
  const isSwapped = options.indexing === 'xy' && tensors.length > 1;
  return scope(() =>
    tensors.map((tensor, d) => {
      const along = reshape(
        tensor,
        shape.map((size, at) => (at === d ? size : 1)),
      );
      const whole = expand(along, shape);
      return isSwapped ? transpose(whole, 0, 1) : whole;
    }),
  );
}
