import { type DType, dtypes } from './dtype.ts';
import { CollectiveError, unknownDtype } from './errors.ts';
import { shown } from './options/errors.ts';
import { isReducible as isInTable, type ReduceOp } from './reduce-ops.ts';

/**
 * Returns whether `op` is defined on `dtype`. A backend may support fewer combinations, never more. Throws
 * ERR_COLL_INVALID for an unknown dtype.
 */
export function isReducible(op: ReduceOp, dtype: DType): boolean {
  if (!dtypes.includes(dtype))
    throw new CollectiveError(unknownDtype('isReducible', shown(dtype), dtypes), null);
  return isInTable(op, dtype);
}
