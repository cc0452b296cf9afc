// A safetensors file whose tensors have one row per sample, as a data set; rows are read on request.

import {
  type ElementType,
  elementBytes,
  HeaderError,
  parseSafetensorsHeader,
  safetensorsHeaderBytes,
  safetensorsInOrder,
  safetensorsStartBytes,
  swapTo,
} from '@ringwise/formats';
import { checkIndex, checkRows } from '../../check.ts';
import type { Dataset, Indices } from '../../datasets/dataset.ts';
import { badFile } from '../../errors.ts';
import { elementCount, type NdArray } from '../../typed-array.ts';
import { arrayTypes, elementArrays } from '../element-arrays.ts';
import { OpenFile } from '../open-file.ts';

interface Column {
  readonly name: string;
  readonly type: ElementType;
  /** Shape of one sample. */
  readonly shape: readonly number[];
  readonly rows: number;
  /** Offset of the tensor's first byte in the file. */
  readonly offset: number;
}

/**
 * A safetensors file: sample i is row i of every tensor, by name. BOOL gives a Uint8Array. The constructor throws
 * ERR_DATA_FILE for floats of 8 and 16 bits, and if the tensors differ in their numbers of rows. Synchronous. Owns an
 * open file until close().
 */
export class SafetensorsFile<F extends Record<string, NdArray> = Record<string, NdArray>>
  implements Dataset<F, F>
{
  /** Number of samples: the size of the first dimension of each tensor. */
  readonly length: number;
  readonly #file: OpenFile;
  readonly #columns: readonly Column[];

  constructor(path: string) {
    this.#file = new OpenFile(path);
    try {
      this.#columns = columnsOf(this.#file);
    } catch (error) {
      this.close();
      throw error;
    }
    this.length = this.#columns[0]!.rows;
  }

  get(index: number): F {
    const entries = Object.entries(this.getBatch([index]));
    return Object.fromEntries(
      entries.map(([name, { data, shape }]) => [name, { data, shape: shape.slice(1) }]),
    ) as F;
  }

  /** Returns a batch in new memory. */
  getBatch(indices: Indices): F {
    for (const index of indices) checkIndex('SafetensorsFile', index, this.length);
    return Object.fromEntries(
      this.#columns.map((column) => [column.name, this.#gather(column, indices)]),
    ) as F;
  }

  /** Closes the file. Idempotent. */
  close(): void {
    this.#file.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #gather({ type, shape, offset }: Column, indices: Indices): NdArray {
    const width = elementBytes[type];
    const rowBytes = elementCount(shape) * width;
    const memory = new ArrayBuffer(indices.length * rowBytes);
    for (const [row, index] of indices.entries()) {
      this.#file.read(new Uint8Array(memory, row * rowBytes, rowBytes), offset + index * rowBytes);
    }
    swapTo(Buffer.from(memory), width, 'LE');
    return { data: elementArrays[type]!(memory), shape: [indices.length, ...shape] };
  }
}

function columnsOf(file: OpenFile): Column[] {
  const { path, size } = file;
  try {
    const start = Buffer.alloc(Math.min(safetensorsStartBytes, size));
    file.read(start, 0);
    const text = Buffer.alloc(safetensorsHeaderBytes(start, size));
    file.read(text, safetensorsStartBytes);
    const header = parseSafetensorsHeader(text, size, { types: arrayTypes, needsRows: true });
    const columns = header.entries.map(({ name, type, shape: [rows, ...shape], begin }) => {
      return { name, type, shape, rows: rows!, offset: header.dataStart + begin };
    });
    checkEqualRows(path, columns);
    safetensorsInOrder(header);
    checkRows('SafetensorsFile', file, columns[0]!.rows);
    return columns;
  } catch (error) {
    if (error instanceof HeaderError) throw bad(path, error.expected, error.got, error.cause);
    throw error;
  }
}

function checkEqualRows(path: string, [first, ...others]: readonly Column[]): void {
  if (first === undefined) throw bad(path, 'at least one tensor', 'none');
  const other = others.find(({ rows }) => rows !== first.rows);
  if (other === undefined) return;
  const got = `${other.rows} in "${other.name}"`;
  throw bad(path, `${first.rows} rows in every tensor, as in "${first.name}"`, got);
}

function bad(path: string, expected: string, got: string, cause?: unknown) {
  const next = 'The file is damaged, or holds a model rather than samples.';
  return badFile('SafetensorsFile', path, ['not a table of samples', expected, got], next, cause);
}
