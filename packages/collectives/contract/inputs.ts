// Inputs whose reductions are exact in any order and for every dtype: small integers that repeat with a short
// period. The right answer is thus known without another implementation, and every element is compared for
// equality.

import { isNarrowFloat, narrowFloats } from '../src/backends/arithmetic/narrow-floats.ts';
import type { DType } from '../src/dtype.ts';
import { type ArrayOf, allocHost, type BufferLike, elementsOf, isPlain } from '../src/group/buffer.ts';
import type { ReduceOp } from '../src/reduce-ops.ts';

/** A common multiple of the periods below. */
const period = 42;

/**
 * Returns rank `rank`'s element at index `i`, chosen so that `op` over `size` ranks stays exact and fits into
 * int8.
 */
function inputAt(op: ReduceOp | 'move', dtype: DType, rank: number, i: number, size: number): number {
  const isSigned = !dtype.startsWith('u') && dtype !== 'bool';
  const small = (i * 5 + rank * 3) % 7;
  if (dtype === 'bool') return small % 2;
  if (dtype.startsWith('float8')) return float8At(op, rank, i, size);
  if (op === 'prod') return [2, 1, isSigned ? -1 : 1][(i + rank) % 3] as number;
  if (op === 'avg') return (small - 3) * size;
  return isSigned ? small - 3 : small;
}

/**
 * Like inputAt(), for 8-bit floats: sums of up to 8 ranks, and multiples by `factorOf`, are exact with 2 bits
 * of fraction, even if added in that type.
 */
function float8At(op: ReduceOp | 'move', rank: number, i: number, size: number): number {
  if (op === 'prod') return [2, 1, -1][(i + rank) % 3] as number;
  if (op === 'avg') return (i % 3) - 1;
  const value = ((i * 5 + rank * 3) % 3) - 1;
  return op === 'premulSum' && rank !== i % size ? 0 : value;
}

/** Returns a rank's factor for 'premulSum'. */
export function factorOf(rank: number): number {
  return (rank + 1) / 2;
}

function reducedAt(op: ReduceOp, dtype: DType, i: number, size: number): number {
  const inputs = Array.from({ length: size }, (_, rank) => inputAt(op, dtype, rank, i, size));
  switch (op) {
    case 'sum':
      return inputs.reduce((a, b) => a + b);
    case 'avg':
      return inputs.reduce((a, b) => a + b) / size;
    case 'premulSum':
      return inputs.reduce((sum, x, rank) => sum + x * factorOf(rank), 0);
    case 'prod':
      return inputs.reduce((a, b) => a * b);
    case 'min':
      return Math.min(...inputs);
    case 'max':
      return Math.max(...inputs);
    case 'band':
      return inputs.reduce((a, b) => a & b);
    case 'bor':
      return inputs.reduce((a, b) => a | b);
    case 'bxor':
      return inputs.reduce((a, b) => a ^ b);
  }
}

/** Returns the element that represents `value`: a number, the bits of a narrow float, or a bigint. */
export function encode(dtype: DType, value: number): number | bigint {
  if (dtype === 'int64' || dtype === 'uint64') return BigInt(value);
  return isNarrowFloat(dtype) ? narrowFloats[dtype].to(value) : value;
}

/** Repeating contents of a buffer: element i is `table[i % table.length]`. */
export type Pattern = readonly (number | bigint)[];

function patternOf(dtype: DType, valueAt: (i: number) => number): Pattern {
  return Array.from({ length: period }, (_, i) => encode(dtype, valueAt(i)));
}

export function inputPattern(op: ReduceOp | 'move', dtype: DType, rank: number, size: number): Pattern {
  return patternOf(dtype, (i) => inputAt(op, dtype, rank, i, size));
}

export function reducedPattern(op: ReduceOp, dtype: DType, size: number): Pattern {
  return patternOf(dtype, (i) => reducedAt(op, dtype, i, size));
}

const guards = 3;

/**
 * `count` elements inside a larger buffer, three elements from its start, so that their address is not aligned
 * for vectors and writes outside of them are detected.
 */
export interface Guarded {
  readonly like: BufferLike;
  readonly elements: ArrayOf<DType>;
  /** Tells whether the memory before and after the elements is unchanged. */
  readonly isIntact: () => boolean;
}

export function guarded(dtype: DType, count: number, fill: Pattern = [encode(dtype, 0)]): Guarded {
  const whole = elementsOf(allocHost(count + 2 * guards, dtype));
  const guard = encode(dtype, 1) as never;
  whole.fill(guard);
  const elements = whole.subarray(guards, guards + count);
  repeat(elements, fill, 0);
  const isIntact = () =>
    [...whole.subarray(0, guards), ...whole.subarray(guards + count)].every((element) => element === guard);
  return { like: isPlain(dtype) ? elements : { data: elements, dtype }, elements, isIntact };
}

/**
 * Returns the index of the first element that differs from the pattern, or -1. The comparison starts at the
 * pattern's element `from`.
 */
export function firstWrong(elements: ArrayOf<DType>, expected: Pattern, from = 0): number {
  const right = elements.slice() as ArrayOf<DType>;
  repeat(right, expected, from);
  if (Buffer.compare(bytesOf(elements), bytesOf(right)) === 0) return -1;
  return elements.findIndex((element: number | bigint, i: number) => element !== right[i]);
}

/** Fills with a pattern by copying increasingly large pieces, which is much faster than single elements. */
function repeat(elements: ArrayOf<DType>, pattern: Pattern, from: number): void {
  for (let i = 0; i < Math.min(pattern.length, elements.length); i++) {
    elements[i] = pattern[(from + i) % pattern.length] as never;
  }
  for (let done = pattern.length; done < elements.length; done *= 2) elements.copyWithin(done, 0, done);
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Returns a repeatable generator of floats in [-1, 1). */
export function randomFloats(seed: number): () => number {
  let state = seed * 0x9e3779b1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 31 - 1;
  };
}
