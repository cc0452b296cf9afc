// Combines a list of samples into one batch, field by field, like PyTorch's default_collate.

import { arrayWithMembers, emptyBatch, notCollatable, outOfRange, unequalSamples } from '../errors.ts';
import {
  allocateLike,
  elementCount,
  isTypedArray,
  type NdArray,
  type TypedArray,
  typeName,
} from '../typed-array.ts';

/** The type of the batch that `defaultCollate` makes from samples of type T. */
export type Collated<T> = T extends number
  ? NdArray<Float32Array>
  : T extends bigint
    ? NdArray<BigInt64Array>
    : T extends boolean
      ? NdArray<Uint8Array>
      : T extends string
        ? string[]
        : T extends TypedArray
          ? NdArray<T>
          : T extends { readonly data: infer D extends TypedArray; readonly shape: readonly number[] }
            ? NdArray<D>
            : T extends object
              ? { -readonly [K in keyof T]: Collated<T[K]> }
              : unknown;

/**
 * Combines samples into a batch. Numbers become a Float32Array, bigints a BigInt64Array, booleans a
 * Uint8Array of 0 and 1; strings stay a list. Typed arrays and `{ data, shape }` of equal type and shape are
 * stacked (copied), with the batch as the first dimension. Arrays and plain objects are collated entry by entry. Throws
 * ERR_DATA_COLLATE if samples differ in type, shape or members, or have a value of another type, a bigint beyond
 * int64, or members beside `data` and `shape`.
 *
 * All numbers become Float32Array, whole or not, so that the type never depends on the values. Whole numbers
 * are exact up to 2^24. Keep class labels in a typed array to get an integer type.
 */
export function defaultCollate<T>(samples: readonly T[]): Collated<T> {
  if (!Array.isArray(samples)) throw outOfRange('defaultCollate: samples', 'an array of samples', samples);
  if (samples.length === 0) throw emptyBatch();
  return collate(samples, 'sample') as Collated<T>;
}

function collate(samples: readonly unknown[], path: string): unknown {
  const first = samples[0];
  const odd = samples.findIndex((sample) => !isAlike(first, sample));
  if (odd > 0) throw unequalSamples(path, describe(first), odd, describe(samples[odd]));

  const shape = [samples.length];
  if (typeof first === 'number') return { data: Float32Array.from(samples as number[]), shape };
  if (typeof first === 'bigint') return { data: int64s(samples as bigint[], path), shape };
  if (typeof first === 'boolean') return { data: Uint8Array.from(samples as boolean[], Number), shape };
  if (typeof first === 'string') return [...samples];
  if (isTypedArray(first)) return stack(samples as TypedArray[], [first.length]);
  if (isNdArray(first)) {
    const further = samples.map(furtherMember).find((name) => name !== undefined);
    if (further !== undefined) throw arrayWithMembers(path, further);
    return stackNdArrays(samples as NdArray[], path);
  }
  if (Array.isArray(first)) {
    return first.map((_, i) =>
      collate(
        (samples as unknown[][]).map((sample) => sample[i]),
        `${path}[${i}]`,
      ),
    );
  }
  if (isPlainObject(first)) {
    const objects = samples as Record<string, unknown>[];
    return Object.fromEntries(
      Object.keys(first).map((key) => [
        key,
        collate(
          objects.map((sample) => sample[key]),
          `${path}.${key}`,
        ),
      ]),
    );
  }
  throw notCollatable(path, describe(first));
}

function int64s(values: readonly bigint[], path: string): BigInt64Array {
  const wrong = values.find((value) => BigInt.asIntN(64, value) !== value);
  if (wrong !== undefined) throw notCollatable(path, 'a bigint beyond the range of int64');
  return BigInt64Array.from(values);
}

function stack(arrays: readonly TypedArray[], shape: readonly number[]): NdArray {
  const size = arrays[0]!.length;
  const data = allocateLike(arrays[0]!, arrays.length * size);
  for (const [i, array] of arrays.entries()) data.set(array as never, i * size);
  return { data, shape: [arrays.length, ...shape] };
}

function stackNdArrays(samples: readonly NdArray[], path: string): NdArray {
  const wrong = samples.find(({ data, shape }) => data.length !== elementCount(shape));
  if (wrong)
    throw notCollatable(path, `${wrong.data.length} elements with the shape [${wrong.shape.join(', ')}]`);
  return stack(
    samples.map(({ data }) => data),
    samples[0]!.shape,
  );
}

function isAlike(a: unknown, b: unknown): boolean {
  if (a === null || b === null) return a === b;
  if (typeof a !== 'object' || typeof b !== 'object') return typeof a === typeof b;
  if (isTypedArray(a)) return isTypedArray(b) && typeName(a) === typeName(b) && a.length === b.length;
  if (isNdArray(a))
    return isNdArray(b) && typeName(a.data) === typeName(b.data) && hasEqualItems(a.shape, b.shape);
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key));
}

function hasEqualItems(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i]);
}

function isNdArray(value: unknown): value is NdArray {
  if (typeof value !== 'object' || value === null) return false;
  const { data, shape } = value as Partial<NdArray>;
  return isTypedArray(data) && Array.isArray(shape);
}

/** Returns the name of a member that a plain `{ data, shape, … }` has besides these two, which would be lost. */
function furtherMember(value: unknown): string | undefined {
  if (!isPlainObject(value)) return undefined;
  return Object.keys(value).find((name) => name !== 'data' && name !== 'shape');
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value !== 'object') return `a ${typeof value}`;
  if (isTypedArray(value)) return `${typeName(value)} [${value.length}]`;
  if (isNdArray(value)) return `${typeName(value.data)} [${value.shape.join(', ')}]`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (isPlainObject(value)) return `an object with ${Object.keys(value).join(', ') || 'no members'}`;
  return `a ${value.constructor.name}`;
}
