// The only memory this package knows: a typed array, and a typed array with a shape (row-major, no strides).

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

/** Elements in row-major order and their dimensions; `data.length` is the product of `shape`. */
export interface NdArray<D extends TypedArray = TypedArray> {
  readonly data: D;
  readonly shape: number[];
}

/** Number of elements of `shape`; 1 for a scalar (`[]`). */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

export function isTypedArray(value: unknown): value is TypedArray {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}

/** The element type by name, such as `Float32Array`; a Node Buffer is a `Uint8Array`. */
export function typeName(data: TypedArray): string {
  return data[Symbol.toStringTag];
}

/** A zeroed array of the same element type. Not `data.constructor`: that of a Node Buffer warns. */
export function allocateLike<D extends TypedArray>(data: D, count: number): D {
  const constructors = globalThis as unknown as Record<string, new (count: number) => D>;
  return new constructors[typeName(data)]!(count);
}
