// How the reference reads and writes memory. Floats of every size compute as numbers and are rounded once, when they
// are stored; integers and bool compute as bigints, which storing wraps around.
import { type DType, dtypeInfo } from '../../core/dtype.ts';
import { reader, toBigint, type Value } from '../../core/element.ts';
import type { Input, Memory, Strided } from '../operands.ts';

export const isInteger = (dtype: DType): boolean => dtypeInfo[dtype].kind !== 'float';

/** Returns a reader whose values have the type that computes for `dtype`: number, or bigint for integers and bool. */
export function readerAs(memory: Memory, dtype: DType): (index: number) => Value {
  const read = reader(memory);
  if (isInteger(memory.dtype) && memory.dtype !== 'int64' && isInteger(dtype)) return (i) => BigInt(read(i));
  if (isInteger(dtype)) return (i) => toBigint(read(i));
  return (i) => Number(read(i));
}

/** Returns the index in the memory of each element of [shape], in row-major order. */
export function offsets(shape: readonly number[], { strides, offset }: Strided): number[] {
  let all = [offset];
  if (strides === null) {
    const count = shape.reduce((a, b) => a * b, 1);
    return Array.from({ length: count }, (_, i) => offset + i);
  }
  for (const [dim, size] of shape.entries()) {
    const next: number[] = [];
    for (const start of all) for (let i = 0; i < size; i++) next.push(start + i * strides[dim]!);
    all = next;
  }
  return all;
}

/**
 * Converts a number operand to the type that computes for `dtype`. Except for float64, floats are rounded to float32.
 */
function asComputed(value: number, dtype: DType): Value {
  if (isInteger(dtype)) return toBigint(value);
  return dtype === 'float64' ? value : Math.fround(value);
}

/**
 * Returns all elements of an input in the order of a dense [shape], as values of the type that computes for `dtype`.
 */
export function readAll(shape: readonly number[], input: Input, dtype: DType): Value[] {
  if (typeof input === 'number') {
    const count = shape.reduce((a, b) => a * b, 1);
    return new Array<Value>(count).fill(asComputed(input, dtype));
  }
  return offsets(shape, input).map(readerAs(input.memory, dtype));
}
