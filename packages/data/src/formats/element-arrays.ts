// The typed arrays that hold the elements of files.
import type { ElementType } from '@ringwise/formats';
import type { TypedArray } from '../typed-array.ts';

/** Functions that make a typed array over memory, by element type. Types without a typed array have none. */
export const elementArrays: Readonly<Partial<Record<ElementType, (memory: ArrayBuffer) => TypedArray>>> = {
  bool: (memory) => new Uint8Array(memory),
  uint8: (memory) => new Uint8Array(memory),
  int8: (memory) => new Int8Array(memory),
  uint16: (memory) => new Uint16Array(memory),
  int16: (memory) => new Int16Array(memory),
  uint32: (memory) => new Uint32Array(memory),
  int32: (memory) => new Int32Array(memory),
  uint64: (memory) => new BigUint64Array(memory),
  int64: (memory) => new BigInt64Array(memory),
  float32: (memory) => new Float32Array(memory),
  float64: (memory) => new Float64Array(memory),
};

/** The types that have a typed array, in the order in which error messages list them. */
export const arrayTypes = Object.keys(elementArrays) as readonly ElementType[];
