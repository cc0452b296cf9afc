// The memory types of this package: typed arrays, and typed arrays with a shape (row-major, without strides).

/** The typed arrays that a batch may consist of. */
export type TypedArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

/** Elements in row-major order and their dimensions. `data.length` is the product of `shape`. */
export interface NdArray<D extends TypedArray = TypedArray> {
  /** The elements, row by row. */
  readonly data: D;
  /** Size of each dimension. */
  readonly shape: number[];
}

/** Returns the number of elements of `shape`; 1 for a scalar (`[]`). */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

export function isTypedArray(value: unknown): value is TypedArray {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}

/** Returns the name of the element type, such as `Float32Array`; `Uint8Array` for a Node.js Buffer. */
export function typeName(data: TypedArray): string {
  return data[Symbol.toStringTag];
}

/**
 * Returns a zeroed array of the same type. Does not use `data.constructor`, because that of a Node.js Buffer
 * warns.
 */
export function allocateLike<D extends TypedArray>(data: D, count: number): D {
  const constructors = globalThis as unknown as Record<string, new (count: number) => D>;
  return new constructors[typeName(data)]!(count);
}
