// A data set in memory, made of typed arrays.

import { checkIndex } from '../check.ts';
import { fieldShape, fieldSize, noFields, outOfRange, tensorAsField } from '../errors.ts';
import { allocateLike, elementCount, isTypedArray, type NdArray, type TypedArray } from '../typed-array.ts';
import type { Dataset, Indices } from './dataset.ts';

/**
 * One named column: the elements of all samples, concatenated, and the shape of one sample (`[]` for single
 * numbers).
 */
export interface ArrayField<D extends TypedArray = TypedArray> {
  /** Elements of all samples, one after another. */
  readonly data: D;
  /** Shape of one sample. */
  readonly shape: readonly number[];
}

/** A sample or a batch of a data set with the fields F. A batch has one more dimension at the front. */
export type FieldArrays<F extends Record<string, ArrayField>> = { [K in keyof F]: NdArray<F[K]['data']> };

/**
 * A data set in memory made of named typed arrays, which are not copied. `get` returns views of them,
 * `getBatch` new memory.
 */
export class ArrayDataset<F extends Record<string, ArrayField>>
  implements Dataset<FieldArrays<F>, FieldArrays<F>>
{
  /** Number of samples. */
  readonly length: number;
  readonly #fields: F;

  constructor(fields: F) {
    if (typeof fields !== 'object' || fields === null)
      throw outOfRange('ArrayDataset: fields', 'an object of { data, shape } by name', fields);
    if (isTensor(fields)) throw tensorAsField(null);
    const columns = Object.entries(fields);
    if (columns.length === 0) throw noFields();
    for (const [name, field] of columns) checkField(name, field);
    const lengths = columns.map(([name, { data, shape }]) => {
      const length = data.length / elementCount(shape);
      if (!Number.isInteger(length)) throw fieldShape(name, data.length, shape);
      return length;
    });
    this.length = lengths[0]!;
    for (const [i, [name, { data, shape }]] of columns.entries()) {
      if (lengths[i] !== this.length) throw fieldSize(name, data.length, shape, this.length);
    }
    this.#fields = fields;
  }

  get(index: number): FieldArrays<F> {
    this.#check(index);
    return this.#eachField(({ data, shape }) => {
      const size = elementCount(shape);
      return { data: data.subarray(index * size, (index + 1) * size), shape: [...shape] };
    });
  }

  getBatch(indices: Indices): FieldArrays<F> {
    for (let i = 0; i < indices.length; i++) this.#check(indices[i]!);
    return this.#eachField(({ data, shape }) => ({
      data: gather(data, elementCount(shape), indices),
      shape: [indices.length, ...shape],
    }));
  }

  #eachField(make: (field: ArrayField) => NdArray): FieldArrays<F> {
    const entries = Object.entries(this.#fields).map(([name, field]) => [name, make(field)]);
    return Object.fromEntries(entries) as FieldArrays<F>;
  }

  #check(index: number): void {
    checkIndex('ArrayDataset', index, this.length);
  }
}

/** Tells whether a value is a tensor: an object that gives its elements by a call and has a shape. */
function isTensor(value: object | null | undefined): boolean {
  const { dataSync, shape } = (value ?? {}) as { readonly dataSync?: unknown; readonly shape?: unknown };
  return typeof dataSync === 'function' && Array.isArray(shape);
}

function checkField(name: string, field: Partial<ArrayField> | null | undefined): void {
  if (isTypedArray(field))
    throw outOfRange(`ArrayDataset: field "${name}"`, '{ data, shape }, with the shape of one sample', field);
  if (isTensor(field)) throw tensorAsField(name);
  const { data, shape } = field ?? {};
  if (!isTypedArray(data)) throw outOfRange(`ArrayDataset: data of "${name}"`, 'a typed array', data);
  const isShape = Array.isArray(shape) && shape.every((size) => Number.isSafeInteger(size) && size >= 0);
  if (!isShape) throw outOfRange(`ArrayDataset: shape of "${name}"`, 'a list of integers ≥ 0', shape);
}

// Below this number of elements per sample a plain loop is faster than `set`.
const smallSample = 16;

function gather<D extends TypedArray>(data: D, size: number, indices: Indices): D {
  const batch = allocateLike(data, indices.length * size);
  for (let i = 0; i < indices.length; i++) {
    const from = indices[i]! * size;
    if (size >= smallSample) batch.set(data.subarray(from, from + size) as never, i * size);
    else for (let j = 0; j < size; j++) batch[i * size + j] = data[from + j]!;
  }
  return batch;
}
