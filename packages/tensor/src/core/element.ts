// Single elements of memory as JavaScript values, for all dtypes: int64 as bigint, everything else as number.

import { fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from '@ringwise/formats';
import { type DType, dtypeInfo, type HostArray } from './dtype.ts';

export type Value = number | bigint;
interface Elements {
  readonly dtype: DType;
  readonly host: HostArray;
}
type Cells = Record<number, Value>;

export function reader({ dtype, host }: Elements): (index: number) => Value {
  const cells = host as Cells;
  if (dtype === 'float16') return (i) => fromFloat16(cells[i] as number);
  if (dtype === 'bfloat16') return (i) => fromBfloat16(cells[i] as number);
  return (i) => cells[i]!;
}

/**
 * Returns a function that writes elements and converts: floats to integers towards zero, any value but 0 to true.
 * Integers wrap around.
 */
export function writer({ dtype, host }: Elements): (index: number, value: Value) => void {
  const cells = host as Cells;
  const convert = converter(dtype);
  return (i, value) => {
    cells[i] = convert(value);
  };
}

function converter(dtype: DType): (value: Value) => Value {
  if (dtype === 'float16') return (value) => toFloat16(Number(value));
  if (dtype === 'bfloat16') return (value) => toBfloat16(Number(value));
  if (dtype === 'int64') return toBigint;
  if (dtype === 'bool') return (value) => (Number(value) === 0 ? 0 : 1);
  if (dtypeInfo[dtype].kind === 'float') return Number;
  // The array itself drops fractions and wraps around.
  return (value) => (typeof value === 'number' ? value : Number(BigInt.asIntN(32, value)));
}

/** Returns `value` rounded to a floating dtype, as comparisons with a number need it; unchanged for integers. */
export function rounded(dtype: DType, value: number): number {
  if (dtype === 'float32') return Math.fround(value);
  if (dtype === 'float16') return fromFloat16(toFloat16(value));
  return dtype === 'bfloat16' ? fromBfloat16(toBfloat16(value)) : value;
}

/** Converts towards zero. NaN and infinities become the smallest int64. */
export function toBigint(value: Value): bigint {
  if (typeof value === 'bigint') return value;
  return Number.isFinite(value) ? BigInt(Math.trunc(value)) : -(2n ** 63n);
}
