// A .npy file as a data set over its first dimension; rows are read on request.

import {
  elementBytes,
  HeaderError,
  type NpyHeader,
  npyHeaderEnd,
  npyStartBytes,
  parseNpyHeader,
  swapTo,
} from '@ringwise/formats';
import { checkIndex, checkRows } from '../../check.ts';
import type { Dataset, Indices } from '../../datasets/dataset.ts';
import { badNpy } from '../../errors.ts';
import { elementCount, type NdArray, type TypedArray } from '../../typed-array.ts';
import { arrayTypes, elementArrays } from '../element-arrays.ts';
import { OpenFile } from '../open-file.ts';

/**
 * A .npy file whose row i is sample i. The file's element type determines the typed array; bool gives a Uint8Array. The
 * constructor throws ERR_DATA_FILE for float16, complex numbers, text and records, and for Fortran order in more than
 * one dimension. Synchronous. Owns an open file until close().
 */
export class NpyFile<D extends TypedArray = TypedArray> implements Dataset<NdArray<D>, NdArray<D>> {
  /** Size of the first dimension: the number of samples. */
  readonly length: number;
  /** Shape of the whole array; its first dimension is `length`. */
  readonly shape: readonly number[];
  readonly #file: OpenFile;
  readonly #header: NpyHeader;

  constructor(path: string) {
    this.#file = new OpenFile(path);
    try {
      this.#header = readHeader(this.#file);
      checkRows('NpyFile', this.#file, this.#header.shape[0]!);
    } catch (error) {
      this.close();
      throw error;
    }
    this.shape = this.#header.shape;
    this.length = this.shape[0]!;
  }

  /** Returns a row in new memory. */
  get(index: number): NdArray<D> {
    return { data: this.getBatch([index]).data, shape: this.shape.slice(1) };
  }

  getBatch(indices: Indices): NdArray<D> {
    const { type, dataStart, isBigEndian } = this.#header;
    const rowBytes = elementCount(this.shape.slice(1)) * elementBytes[type];
    const memory = new ArrayBuffer(indices.length * rowBytes);
    for (let i = 0; i < indices.length; i++) {
      checkIndex('NpyFile', indices[i]!, this.length);
      this.#file.read(new Uint8Array(memory, i * rowBytes, rowBytes), dataStart + indices[i]! * rowBytes);
    }
    swapTo(Buffer.from(memory), elementBytes[type], isBigEndian ? 'BE' : 'LE');
    return { data: elementArrays[type]!(memory) as D, shape: [indices.length, ...this.shape.slice(1)] };
  }

  /** Closes the file. Idempotent. */
  close(): void {
    this.#file.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function readHeader(file: OpenFile): NpyHeader {
  const { path, size } = file;
  try {
    const start = Buffer.alloc(Math.min(npyStartBytes, size));
    file.read(start, 0);
    const bytes = Buffer.alloc(npyHeaderEnd(start, size));
    file.read(bytes, 0);
    const header = parseNpyHeader(bytes, size, { types: arrayTypes, needsRows: true });
    if (header.isFortran && header.shape.length > 1) throw badNpy(path, 'C order', 'Fortran order');
    return header;
  } catch (error) {
    if (error instanceof HeaderError) throw badNpy(path, error.expected, error.got);
    throw error;
  }
}
