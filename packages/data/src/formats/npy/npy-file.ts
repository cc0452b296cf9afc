// A .npy file as a data set over its first dimension; rows are read on request.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

import { checkIndex, checkRows } from '../../check.ts';
import type { Dataset, Indices } from '../../datasets/dataset.ts';
import { badNpy } from '../../errors.ts';
import { elementCount, type NdArray, type TypedArray } from '../../typed-array.ts';
import { swapTo } from '../byte-order.ts';
import { OpenFile } from '../open-file.ts';

const views: Readonly<Record<string, (memory: ArrayBuffer) => TypedArray>> = {
  b1: (memory) => new Uint8Array(memory),
  u1: (memory) => new Uint8Array(memory),
  i1: (memory) => new Int8Array(memory),
  u2: (memory) => new Uint16Array(memory),
  i2: (memory) => new Int16Array(memory),
  u4: (memory) => new Uint32Array(memory),
  i4: (memory) => new Int32Array(memory),
  u8: (memory) => new BigUint64Array(memory),
  i8: (memory) => new BigInt64Array(memory),
  f4: (memory) => new Float32Array(memory),
  f8: (memory) => new Float64Array(memory),
};

/** Limit for the header in bytes. NumPy writes much shorter ones. */
const longestHeader = 100_000;

interface NpyHeader {
  /** Byte order and type in NumPy's notation, such as '<f4'. */
  readonly descr: string;
  readonly shape: readonly number[];
  /** Offset of the first element in the file. */
  readonly offset: number;
}

/**
 * Row i of the array is sample i. The file's element type determines the typed array; bool gives a
 * Uint8Array. Throws ERR_DATA_FILE for float16, complex numbers, text, records and Fortran order.
 * Synchronous. Owns an open file until close().
 */
export class NpyFile<D extends TypedArray = TypedArray> implements Dataset<NdArray<D>, NdArray<D>> {
  readonly length: number;
  /** Shape of the whole array; its first dimension is `length`. */
  readonly shape: readonly number[];
  readonly #file: OpenFile;
  readonly #header: NpyHeader;
  readonly #width: number;
  readonly #view: (memory: ArrayBuffer) => TypedArray;

  constructor(path: string) {
    this.#file = new OpenFile(path);
    try {
      this.#header = readHeader(this.#file);
      const { descr, shape, offset } = this.#header;
      this.#width = Number(descr.slice(2));
      this.#view = views[descr.slice(1)]!;
      const bytes = offset + elementCount(shape) * this.#width;
      if (this.#file.size !== bytes) {
        throw badNpy(path, `${bytes} bytes for ${descr} [${shape.join(', ')}]`, `${this.#file.size}`);
      }
      checkRows('NpyFile', this.#file, shape[0]!);
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
    const rowBytes = elementCount(this.shape.slice(1)) * this.#width;
    const memory = new ArrayBuffer(indices.length * rowBytes);
    for (let i = 0; i < indices.length; i++) {
      checkIndex('NpyFile', indices[i]!, this.length);
      this.#file.read(
        new Uint8Array(memory, i * rowBytes, rowBytes),
        this.#header.offset + indices[i]! * rowBytes,
      );
    }
    swapTo(Buffer.from(memory), this.#width, this.#header.descr[0] === '>' ? 'BE' : 'LE');
    return { data: this.#view(memory) as D, shape: [indices.length, ...this.shape.slice(1)] };
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
  const start = Buffer.alloc(12);
  if (size < start.length) throw badNpy(path, 'a header', `a file of ${size} bytes`);
  file.read(start, 0);
  if (start.toString('latin1', 0, 6) !== '\x93NUMPY') {
    throw badNpy(path, 'the beginning \\x93NUMPY', start.toString('hex', 0, 6));
  }
  const version = start[6]!;
  if (version < 1 || version > 3) throw badNpy(path, 'format version 1, 2 or 3', `${version}`);
  const [begin, length] = version === 1 ? [10, start.readUInt16LE(8)] : [12, start.readUInt32LE(8)];
  const most = Math.min(size - begin, longestHeader);
  if (length > most) throw badNpy(path, `a header of at most ${most} bytes`, `${length}`);
  const text = Buffer.alloc(length);
  file.read(text, begin);
  return { ...parseHeader(text.toString('latin1').trim(), path), offset: begin + length };
}

function parseHeader(text: string, path: string): Omit<NpyHeader, 'offset'> {
  const found = members(text, path);
  const [, descr] = /^'([<>|][a-z]\d+)'$/.exec(found.get('descr') ?? '') ?? [];
  const [, sizes] = /^\((.*)\)$/s.exec(found.get('shape') ?? '') ?? [];
  if (!descr || !Object.hasOwn(views, descr.slice(1)) || sizes === undefined) {
    throw badNpy(path, `a shape and one of the types ${Object.keys(views).join(', ')}`, text);
  }
  const order = found.get('fortran_order');
  if (order !== 'True' && order !== 'False') throw badNpy(path, 'fortran_order True or False', text);
  const parts = sizes.split(',').map((size) => size.trim());
  if (parts.at(-1) === '') parts.pop();
  const shape = parts.map(Number);
  if (shape.length === 0) throw badNpy(path, 'at least one dimension', 'none');
  if (!parts.every((part) => /^\d+$/.test(part)) || !shape.every(Number.isSafeInteger))
    throw badNpy(path, 'a shape', `(${sizes})`);
  if (order === 'True' && shape.length > 1) throw badNpy(path, 'C order', 'Fortran order');
  return { descr, shape };
}

/** Returns the members of the dictionary that Python wrote. */
function members(text: string, path: string): ReadonlyMap<string, string> {
  const types = `a shape and one of the types ${Object.keys(views).join(', ')}`;
  if (!text.startsWith('{') || !text.endsWith('}')) throw badNpy(path, types, text);
  const found = new Map<string, string>();
  const inside = text.slice(1, -1).trim();
  const member = /'(\w+)'\s*:\s*('[^']*'|True|False|\([^()]*\))\s*(?:,\s*|$)/y;
  while (member.lastIndex < inside.length) {
    const match = member.exec(inside);
    if (match === null) throw badNpy(path, types, text);
    const [, name = '', value = ''] = match;
    if (found.has(name)) throw badNpy(path, `each member of the header once`, `${name} twice`);
    found.set(name, value);
  }
  return found;
}
