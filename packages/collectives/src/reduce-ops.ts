// Tells which reduction is defined on which element type. 'avg' and 'premulSum' need fractions, so they exist
// only for floats. A sum of bools could leave values other than 0 and 1, so bools have the bitwise ops.
import type { DType } from './dtype.ts';

/** The reductions, in the order of the enum in native/coll/op.h. */
export const reduceOps = ['sum', 'avg', 'prod', 'min', 'max', 'band', 'bor', 'bxor', 'premulSum'] as const;

type Ops = Readonly<Partial<Record<ReduceOp, true>>>;

const onFloats = opTable('sum', 'avg', 'prod', 'min', 'max', 'premulSum');
const onInts = opTable('sum', 'prod', 'min', 'max', 'band', 'bor', 'bxor');
const onBools = opTable('band', 'bor', 'bxor', 'min', 'max');

const table: Readonly<Record<DType, Ops>> = {
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
  float8_e4m3fn: onFloats,
  float8_e5m2: onFloats,
};

// Records instead of Sets: every reduction is looked up here, and this takes only a few nanoseconds.
function opTable(...ops: readonly ReduceOp[]): Ops {
  return Object.fromEntries(ops.map((op) => [op, true as const]));
}

/** Returns whether `op` is defined on `dtype`. A backend may support fewer combinations, never more. */
export function isReducible(op: ReduceOp, dtype: DType): boolean {
  return table[dtype][op] === true;
}

/** A reduction; isReducible() tells on which element types it is defined. */
export type ReduceOp = 'sum' | 'avg' | 'prod' | 'min' | 'max' | 'band' | 'bor' | 'bxor' | 'premulSum';

/** Returns the factor of a reduction if the caller gave none: NaN if the op needs one, which group/check.ts refuses. */
export function defaultFactor(op: ReduceOp): number {
  return op === 'premulSum' ? Number.NaN : 1;
}
