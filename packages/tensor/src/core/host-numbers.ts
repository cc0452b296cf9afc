// Lists of numbers that JavaScript computes and whose length an argument of the program determines. A typed array that
// is too long throws an error without a code, and an array that is too long ends the process.
import { outOfHostMemory } from '../errors.ts';
import { type DType, dtypeInfo, type HostArray } from './dtype.ts';

/** Returns `count` numbers, zeros without `at`. Throws ERR_TENSOR_MEMORY if there is no memory for them. */
export function hostNumbers(count: number, at?: (i: number) => number): Float64Array<ArrayBuffer> {
  try {
    const numbers = new Float64Array(count);
    if (at !== undefined) for (let i = 0; i < count; i++) numbers[i] = at(i);
    return numbers;
  } catch (error) {
    throw error instanceof RangeError ? outOfHostMemory('float64', count, error) : error;
  }
}

/** Returns an array for `count` elements of a dtype. Throws ERR_TENSOR_MEMORY if there is no memory for them. */
export function hostArray(dtype: DType, count: number): HostArray {
  try {
    return new dtypeInfo[dtype].array(count);
  } catch (error) {
    throw error instanceof RangeError ? outOfHostMemory(dtype, count, error) : error;
  }
}

/** Throws ERR_TENSOR_MEMORY for an array of more than `most` items, which would end the process. */
export function checkListed(count: number, most = 2 ** 26): void {
  if (count > most) throw outOfHostMemory('float64', count, undefined);
}
