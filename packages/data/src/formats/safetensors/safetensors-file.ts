// A safetensors file whose tensors have one row per sample, as a data set; rows are read on request.
// https://github.com/huggingface/safetensors#format

import { parseJson, swapTo } from '@ringwise/formats';
import { checkIndex, checkRows } from '../../check.ts';
import type { Dataset, Indices } from '../../datasets/dataset.ts';
import { badFile } from '../../errors.ts';
import { elementCount, type NdArray, type TypedArray } from '../../typed-array.ts';
import { OpenFile } from '../open-file.ts';

const views: Readonly<Record<string, readonly [width: number, view: (memory: ArrayBuffer) => TypedArray]>> = {
  BOOL: [1, (memory) => new Uint8Array(memory)],
  U8: [1, (memory) => new Uint8Array(memory)],
  I8: [1, (memory) => new Int8Array(memory)],
  U16: [2, (memory) => new Uint16Array(memory)],
  I16: [2, (memory) => new Int16Array(memory)],
  U32: [4, (memory) => new Uint32Array(memory)],
  I32: [4, (memory) => new Int32Array(memory)],
  U64: [8, (memory) => new BigUint64Array(memory)],
  I64: [8, (memory) => new BigInt64Array(memory)],
  F32: [4, (memory) => new Float32Array(memory)],
  F64: [8, (memory) => new Float64Array(memory)],
};

const longestHeader = 100_000_000; // as the format's own reader has it
const mostDepth = 8;
const metadataKey = '__metadata__';

interface Column {
  readonly name: string;
  /** Shape of one sample. */
  readonly shape: readonly number[];
  readonly width: number;
  /** Offset of its first byte in the file. */
  readonly offset: number;
  readonly rows: number;
  /** Number of bytes of all rows. */
  readonly bytes: number;
  readonly view: (memory: ArrayBuffer) => TypedArray;
}

/**
 * Row i of every tensor, by name, is sample i. BOOL gives a Uint8Array. Throws ERR_DATA_FILE for 16-bit
 * floats. Synchronous. Owns an open file until close().
 */
export class SafetensorsFile<F extends Record<string, NdArray> = Record<string, NdArray>>
  implements Dataset<F, F>
{
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

  #gather({ shape, width, offset, view }: Column, indices: Indices): NdArray {
    const rowBytes = elementCount(shape) * width;
    const memory = new ArrayBuffer(indices.length * rowBytes);
    for (const [row, index] of indices.entries()) {
      this.#file.read(new Uint8Array(memory, row * rowBytes, rowBytes), offset + index * rowBytes);
    }
    swapTo(Buffer.from(memory), width, 'LE');
    return { data: view(memory), shape: [indices.length, ...shape] };
  }
}

function columnsOf(file: OpenFile): Column[] {
  const { path, size } = file;
  const prefix = Buffer.alloc(8);
  if (size < 8) throw bad(path, 'a header', `a file of ${size} bytes`);
  file.read(prefix, 0);
  const headerBytes = Number(prefix.readBigUInt64LE());
  const most = Math.min(size - 8, longestHeader);
  if (headerBytes > most) throw bad(path, `a header of at most ${most} bytes`, `${headerBytes}`);
  const text = Buffer.alloc(headerBytes);
  file.read(text, 8);
  const header = parseHeader(path, text);
  const columns = Object.entries(header)
    .filter(([name]) => name !== metadataKey)
    .map(([name, tensor]) => columnOf(file, name, tensor, 8 + headerBytes));
  if (columns.length === 0) throw bad(path, 'at least one tensor', 'none');
  const [first] = columns;
  const other = columns.find(({ rows }) => rows !== first!.rows);
  if (other) {
    const got = `${other.rows} in "${other.name}"`;
    throw bad(path, `${first!.rows} rows in every tensor, as in "${first!.name}"`, got);
  }
  checkCover(path, columns, 8 + headerBytes, size);
  checkRows('SafetensorsFile', file, first!.rows);
  return columns;
}

function parseHeader(path: string, text: Buffer): Record<string, unknown> {
  let header: unknown;
  try {
    header = parseJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(text), mostDepth);
  } catch (cause) {
    throw bad(path, 'a header of JSON', (cause as Error).message, cause);
  }
  if (!isObject(header)) throw bad(path, 'a header that is an object', 'another value');
  const metadata = header[metadataKey] ?? {};
  if (!isObject(metadata) || !Object.values(metadata).every((value) => typeof value === 'string'))
    throw bad(path, `${metadataKey} to be an object of strings`, JSON.stringify(metadata));
  return header;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Checks the format's rule that tensors are adjacent and cover the whole file. */
function checkCover(path: string, columns: readonly Column[], begin: number, size: number): void {
  let covered = begin;
  for (const { name, offset, bytes } of columns.toSorted(
    (a, b) => a.offset - b.offset || a.bytes - b.bytes,
  )) {
    if (offset !== covered)
      throw bad(path, `"${name}" at byte ${covered}, behind the tensor before`, `${offset}`);
    covered = offset + bytes;
  }
  if (covered !== size) throw bad(path, `${covered} bytes, the end of the last tensor`, `a file of ${size}`);
}

function columnOf({ path, size }: OpenFile, name: string, tensor: unknown, dataOffset: number): Column {
  const { dtype, shape, data_offsets: range } = (tensor ?? {}) as Record<string, unknown>;
  const [width, view] = typeof dtype === 'string' && Object.hasOwn(views, dtype) ? views[dtype]! : [];
  if (!width || !view)
    throw bad(
      path,
      `a type of ${Object.keys(views).join(', ')} for "${name}"`,
      typeof dtype === 'string' ? dtype : String(JSON.stringify(dtype)),
    );
  if (!isSizes(shape) || shape.length === 0) {
    throw bad(path, `a shape of at least one dimension for "${name}"`, JSON.stringify(shape) ?? 'undefined');
  }
  const bytes = elementCount(shape) * width;
  if (!isSizes(range) || range.length !== 2 || range[1]! - range[0]! !== bytes) {
    throw bad(path, `a range of ${bytes} bytes for "${name}"`, JSON.stringify(range) ?? 'undefined');
  }
  if (dataOffset + range[1]! > size) {
    throw bad(path, `${dataOffset + range[1]!} bytes with "${name}" in them`, `a file of ${size}`);
  }
  return { name, shape: shape.slice(1), width, offset: dataOffset + range[0]!, rows: shape[0]!, bytes, view };
}

function isSizes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}

function bad(path: string, expected: string, got: string, cause?: unknown) {
  const next = 'The file is damaged, or holds a model rather than samples.';
  return badFile('SafetensorsFile', path, ['not a table of samples', expected, got], next, cause);
}
