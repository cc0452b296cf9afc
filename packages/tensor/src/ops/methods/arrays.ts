// Methods that make tensors like others, and that rearrange elements.
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { creationChecks, empty, full, ones, zeros } from '../../core/creation.ts';
import type { ArrayMethods } from '../../core/methods/arrays.ts';
import type { CreationOptions } from '../../core/op-options.ts';
import type { Tensor } from '../../core/tensor.ts';
import { allclose, equal } from '../compare/close.ts';
import { indexReduce, maskedScatter, put } from '../indexing/flat-writes.ts';
import { nonzero } from '../indexing/mask.ts';
import { diagonalScatter, selectScatter, sliceScatter } from '../indexing/view-scatter.ts';
import {
  broadcastTo,
  expandAs,
  fliplr,
  flipud,
  movedim,
  ravel,
  reshapeAs,
  rot90,
  swapaxes,
  viewAs,
} from '../shape/moves.ts';
import { repeatInterleave, tile } from '../shape/repeats.ts';
import { sumToSize } from '../shape/sizes.ts';
import { dsplit, hsplit, tensorSplit, vsplit } from '../shape/splits.ts';
import { unfold } from '../shape/windows.ts';
import { addFunctions } from './define.ts';

const creationOptions = optionChecks<CreationOptions>(creationChecks);

/** Returns the options with the dtype and the device of a tensor, where they name none. */
function like(op: string, a: Tensor, options: CreationOptions = {}): CreationOptions {
  checkOptions(op, options, creationOptions);
  return { dtype: a.dtype, device: a.device, ...options };
}

addFunctions<ArrayMethods<Tensor>>({
  newZeros: (a, shape, options) => zeros(shape, like('newZeros', a, options)),
  newOnes: (a, shape, options) => ones(shape, like('newOnes', a, options)),
  newFull: (a, shape, value, options) => full(shape, value, like('newFull', a, options)),
  newEmpty: (a, shape, options) => empty(shape, like('newEmpty', a, options)),
  allclose,
  equal,
  tile,
  repeatInterleave,
  movedim,
  swapaxes,
  unfold,
  rot90,
  fliplr,
  flipud,
  argwhere: nonzero,
  tensorSplit,
  hsplit,
  vsplit,
  dsplit,
  broadcastTo,
  ravel,
  viewAs,
  reshapeAs,
  expandAs,
  sumToSize,
  ...{ put, maskedScatter, indexReduce, selectScatter, sliceScatter, diagonalScatter },
});
