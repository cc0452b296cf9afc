// Which reduction is defined on which element type. 'avg' and 'premulSum' need division and fractions, so they
// exist for floats only; a sum of bools would leave values other than 0 and 1, so bools have the bitwise ones.
import type { ReduceOp } from './backend.ts';
import type { DType } from './dtype.ts';

export const reduceOps = ['sum', 'avg', 'prod', 'min', 'max', 'band', 'bor', 'bxor', 'premulSum'] as const;

const onFloats: ReadonlySet<ReduceOp> = new Set(['sum', 'avg', 'prod', 'min', 'max', 'premulSum']);
const onInts: ReadonlySet<ReduceOp> = new Set(['sum', 'prod', 'min', 'max', 'band', 'bor', 'bxor']);
const onBools: ReadonlySet<ReduceOp> = new Set(['band', 'bor', 'bxor', 'min', 'max']);

const table: Record<DType, ReadonlySet<ReduceOp>> = {
  float32: onFloats,
  float64: onFloats,
  float16: onFloats,
  bfloat16: onFloats,
  int8: onInts,
  int16: onInts,
  int32: onInts,
  int64: onInts,
  uint8: onInts,
  uint16: onInts,
  uint32: onInts,
  uint64: onInts,
  bool: onBools,
};

/** Whether `op` means something on `dtype`. A backend may support less, never more. */
export function isReducible(op: ReduceOp, dtype: DType): boolean {
  return table[dtype].has(op);
}
