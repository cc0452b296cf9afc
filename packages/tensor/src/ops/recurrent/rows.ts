// Rows of matrices in memory, on which the steps of a recurrence compute.
import type { MapOp } from '../../backends/declarations/names.ts';
import { kernels } from '../../backends/index.ts';
import type { Input, Strided } from '../../backends/operands.ts';
import type { DType } from '../../core/dtype.ts';
import { allocate, type Storage } from '../../core/memory/storage.ts';
import type { Tensor } from '../../core/tensor.ts';
import type { Device } from '../../device/device.ts';
import { denseMatrices, type Matrices, multiply } from '../matrix/matmul.ts';

/** Dense rows of `width` elements, from row `first` of a storage on. */
export class Rows {
  readonly storage: Storage;
  readonly width: number;
  readonly first: number;

  constructor(storage: Storage, width: number, first = 0) {
    this.storage = storage;
    this.width = width;
    this.first = first;
  }

  /** Returns the rows from row `by` on. */
  from(by: number): Rows {
    return new Rows(this.storage, this.width, this.first + by);
  }

  /** Returns the elements of each row from column `start` on, for a kernel of shape [rows, columns]. */
  at(start = 0): Strided {
    const { memory } = this.storage.dense;
    return {
      memory,
      offset: this.storage.dense.offset + this.first * this.width + start,
      strides: [this.width, 1],
    };
  }

  get dense(): Strided {
    const { memory, offset } = this.storage.dense;
    return { memory, offset: offset + this.first * this.width, strides: null };
  }

  /** Returns `count` rows as one matrix. */
  matrix(count: number): Matrices {
    return denseMatrices(this.dense, [count, this.width]);
  }
}

/** Runs kernels on rows of one dtype, and holds the memory that it allocates until done(). */
export class RowKernels {
  readonly dtype: DType;
  readonly device: Device;
  readonly #own: Storage[] = [];

  constructor(dtype: DType, device: Device) {
    this.dtype = dtype;
    this.device = device;
  }

  /** Returns rows that have not been written. */
  rows(count: number, width: number): Rows {
    const storage = allocate(this.dtype, count * width, this.device);
    this.#own.push(storage);
    return new Rows(storage, width);
  }

  /** Returns the elements of a dense tensor as rows, in the same memory. */
  over(tensor: Tensor, width: number): Rows {
    const storage = tensor.storage.retain();
    this.#own.push(storage);
    return new Rows(storage, width);
  }

  /** Computes an elementwise operation on `count` rows of `width` elements. */
  map(op: MapOp, count: number, width: number, out: Strided, a: Input, b?: Input, c?: Input): void {
    if (count > 0) kernels().map(op, this.dtype, [count, width], out, a, b, c);
  }

  copy(count: number, width: number, out: Strided, a: Input): void {
    if (count > 0) kernels().copy([count, width], out, a);
  }

  /** Computes out (+)= a · w for `count` rows; w is [a.width, out.width]. */
  product(count: number, out: Rows, a: Rows, w: Matrices, accumulate: boolean): void {
    multiply([], out.dense, a.matrix(count), w, count, out.width, a.width, accumulate);
  }

  /** Releases the memory, except memory that the tape has saved. */
  done(): void {
    for (const storage of this.#own) storage.release();
    this.#own.length = 0;
  }
}
