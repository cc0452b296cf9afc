// Reductions: the strides of the output say which elements of the input go into each element of the output.

import { type Value, writer } from '../../core/element.ts';
import type { ReduceOp } from '../declarations/names.ts';
import type { Strided } from '../operands.ts';
import { isInteger, offsets, readAll } from './access.ts';

type Shape = readonly number[];

/** Groups the input's elements by the index in memory of their output. Inside a group they keep row-major order. */
function grouped(shape: Shape, out: Strided, a: Strided, isWide: boolean): Map<number, Value[]> {
  const groups = new Map<number, Value[]>();
  // Outputs of nothing have a group too.
  const kept = shape.map((size, d) => (out.strides![d] === 0 ? 1 : size));
  for (const at of offsets(kept, out)) groups.set(at, []);
  const values = readAll(shape, a, isWide ? 'float64' : a.memory.dtype);
  for (const [i, at] of offsets(shape, out).entries()) groups.get(at)!.push(values[i]!);
  return groups;
}

/** Tells whether `value` replaces `best`: it is more extreme, or the first NaN. */
const isBetter = (op: 'max' | 'min', value: Value, best: Value): boolean => {
  if (Number.isNaN(best)) return false;
  return Number.isNaN(value) || (op === 'max' ? value > best : value < best);
};

function extreme(op: 'max' | 'min', values: readonly Value[], isIntegers: boolean): Value {
  const nothing = isIntegers
    ? op === 'max'
      ? -(2n ** 63n)
      : 2n ** 63n - 1n
    : op === 'max'
      ? -Infinity
      : Infinity;
  return values.reduce((best, value) => (isBetter(op, value, best) ? value : best), values[0] ?? nothing);
}

/** Returns the product or the sum. `a` and `b` are both numbers or both bigints. */
const combined = (isProduct: boolean, a: Value, b: Value): Value =>
  isProduct ? (a as number) * (b as number) : (a as number) + (b as number);

export function reduce(op: ReduceOp, shape: Shape, out: Strided, a: Strided): void {
  const isTotal = op !== 'max' && op !== 'min';
  // Sums and products of integers are bigints unless the output is a float.
  const isWide = isTotal && !isInteger(out.memory.dtype);
  const isBig = !isWide && isInteger(a.memory.dtype);
  const write = writer(out.memory);
  for (const [at, values] of grouped(shape, out, a, isWide)) {
    if (!isTotal) {
      write(at, extreme(op, values, isBig));
      continue;
    }
    const start = op === 'prod' ? 1 : 0;
    const total = values.reduce((x, y) => combined(op === 'prod', x, y), isBig ? BigInt(start) : start);
    write(at, op === 'mean' ? Number(total) / values.length : total);
  }
}

export function argReduce(op: 'max' | 'min', shape: Shape, out: Strided, a: Strided): void {
  const write = writer(out.memory);
  for (const [at, values] of grouped(shape, out, a, false)) {
    let best = 0;
    for (const [i, value] of values.entries()) if (isBetter(op, value, values[best]!)) best = i;
    write(at, best);
  }
}
