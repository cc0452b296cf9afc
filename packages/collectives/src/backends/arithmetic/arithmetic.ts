// The arithmetic of the reference backends. Elements are combined in rank order, rank 0 first. Floats of
// every width and integers up to 32 bits are reduced in float64 and converted once at the end. Integers wrap.
// A NaN in any input makes min and max NaN.

import type { DType } from '../../dtype.ts';
import { type ArrayOf, allocHost, type BufferView, elementsOf } from '../../group/buffer.ts';
import type { ReduceOp } from '../../reduce-ops.ts';
import { isNarrowFloat, narrowFloats } from './narrow-floats.ts';

type BigInts = ArrayOf<'int64' | 'uint64'>;

/** One rank's contribution. */
export interface Term {
  readonly buffer: BufferView;
  /** Factor for 'premulSum'; otherwise 1. */
  readonly factor: number;
}

/** Reduces buffers of one dtype and length. Returns the result in new memory of the same representation. */
export function reduce(op: ReduceOp, terms: readonly Term[]): ArrayOf<DType> {
  const { dtype } = (terms[0] as Term).buffer;
  if (dtype === 'int64' || dtype === 'uint64') {
    return fold(
      terms.map(({ buffer }) => elementsOf(buffer).slice() as BigInts),
      bigintSteps[op],
    );
  }
  const inputs = terms.map(({ buffer }) => widen(buffer));
  if (op === 'premulSum') {
    for (const [rank, input] of inputs.entries()) scale(input, (terms[rank] as Term).factor);
  }
  const sum = fold(inputs, isFloat(dtype) ? floatSteps[op] : intSteps[op]);
  if (op === 'avg') for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] as number) / inputs.length;
  return narrow(sum, dtype);
}

/** Overwrites the elements of `buffer` with `values`, which have the same representation. */
export function write(buffer: BufferView, values: ArrayOf<DType>): void {
  elementsOf(buffer).set(values as never);
}

function widen(buffer: BufferView): Float64Array {
  const wide = new Float64Array(elementsOf(buffer) as Exclude<ArrayOf<DType>, BigInts>);
  if (!isNarrowFloat(buffer.dtype)) return wide;
  const { from } = narrowFloats[buffer.dtype];
  for (let i = 0; i < wide.length; i++) wide[i] = from(wide[i] as number);
  return wide;
}

function narrow(wide: Float64Array, dtype: DType): ArrayOf<DType> {
  const elements = elementsOf(allocHost(wide.length, dtype)) as Exclude<ArrayOf<DType>, BigInts>;
  if (!isNarrowFloat(dtype)) {
    elements.set(wide);
    return elements;
  }
  const { to } = narrowFloats[dtype];
  for (let i = 0; i < wide.length; i++) elements[i] = to(wide[i] as number);
  return elements;
}

function isFloat(dtype: DType): boolean {
  return dtype.includes('float');
}

function scale(values: Float64Array, factor: number): void {
  for (let i = 0; i < values.length; i++) values[i] = (values[i] as number) * factor;
}

type Step<T> = (sum: T, next: T) => T;

const add: Step<number> = (a, b) => a + b;

const intSteps: Record<ReduceOp, Step<number>> = {
  sum: add,
  avg: add,
  premulSum: add,
  prod: Math.imul, // a * b would lose low bits above 2^53
  min: Math.min,
  max: Math.max,
  band: (a, b) => a & b,
  bor: (a, b) => a | b,
  bxor: (a, b) => a ^ b,
};

const floatSteps: Record<ReduceOp, Step<number>> = { ...intSteps, prod: (a, b) => a * b };

const bigintSteps: Record<ReduceOp, Step<bigint>> = {
  sum: (a, b) => a + b,
  prod: (a, b) => a * b,
  min: smaller,
  max: (a, b) => (smaller(a, b) === a ? b : a),
  band: (a, b) => a & b,
  bor: (a, b) => a | b,
  bxor: (a, b) => a ^ b,
  avg: undefinedHere,
  premulSum: undefinedHere,
};

function smaller(a: bigint, b: bigint): bigint {
  if (b < a) return b;
  return a;
}

function undefinedHere(): never {
  throw new Error('bug: this reduction is not defined on integers; please report it.');
}

/** Combines the inputs into the first one, which is overwritten and returned. */
function fold<T, A extends { [index: number]: T; readonly length: number }>(
  inputs: readonly A[],
  step: Step<T>,
): A {
  const [sum, ...others] = inputs as [A, ...A[]];
  for (const other of others) {
    for (let i = 0; i < sum.length; i++) sum[i] = step(sum[i] as T, other[i] as T) as A[number];
  }
  return sum;
}
