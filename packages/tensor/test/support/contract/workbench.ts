// Gives the contract's tests memory that is freed after each test, and operands over it.
import { afterEach } from 'vitest';
import type { Kernels } from '../../../src/backends/kernels.ts';
import type { Memory, Strided } from '../../../src/backends/operands.ts';
import type { DType, HostArray } from '../../../src/core/dtype.ts';
import type { Device } from '../../../src/device/device.ts';
import { hostOf, numbers } from '../kernels-oracle.ts';

export class Workbench {
  kernels!: Kernels;
  readonly device: Device;
  #memory: Memory[] = [];

  constructor(device: Device) {
    this.device = device;
    afterEach(() => {
      for (const memory of this.#memory) this.kernels.free(memory);
      this.#memory = [];
    });
  }

  /** Allocates memory with these values. */
  put(dtype: DType, values: readonly number[]): Strided {
    return this.putArray(dtype, hostOf(dtype, values));
  }

  putArray(dtype: DType, array: HostArray): Strided {
    const memory = this.kernels.alloc(dtype, array.length, this.device);
    this.kernels.write(memory, 0, array);
    this.#memory.push(memory);
    return { memory, offset: 0, strides: null };
  }

  floats(values: readonly number[]): Strided {
    return this.put('float32', values);
  }

  /** Allocates memory full of a value that kernels must not read or leave behind. */
  dirty(count: number, dtype: DType = 'float32'): Strided {
    return this.put(dtype, Array(count).fill(99));
  }
}

/** Returns all elements of an operand's memory as numbers. */
export const valuesOf = ({ memory }: Strided): number[] => numbers(memory);
/** Returns an operand over the same memory with other strides and offset. */
export const walked = ({ memory }: Strided, strides: readonly number[], offset = 0): Strided => ({
  memory,
  offset,
  strides,
});
