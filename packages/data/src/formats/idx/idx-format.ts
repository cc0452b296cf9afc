// The IDX format of the MNIST files: two zero bytes, one byte for the element type, one for the number of dimensions,
// each dimension as a big-endian uint32, then the elements, big-endian, row-major. http://yann.lecun.com/exdb/mnist/

import { swapTo } from '@ringwise/formats';
import {
  idxDimensions,
  idxTooLarge,
  idxTrailing,
  idxTruncated,
  notIdx,
  notWritable,
  outOfRange,
} from '../../errors.ts';
import { elementCount, isTypedArray, type NdArray, typeName } from '../../typed-array.ts';

/** The typed arrays in which readIdx() returns elements. */
export type IdxArray = Uint8Array | Int8Array | Int16Array | Int32Array | Float32Array | Float64Array;

interface IdxType {
  readonly code: number;
  readonly name: string;
  readonly bytes: 1 | 2 | 4 | 8;
  readonly view: (memory: ArrayBuffer) => IdxArray;
}

const types: readonly IdxType[] = [
  { code: 0x08, name: 'Uint8Array', bytes: 1, view: (memory) => new Uint8Array(memory) },
  { code: 0x09, name: 'Int8Array', bytes: 1, view: (memory) => new Int8Array(memory) },
  { code: 0x0b, name: 'Int16Array', bytes: 2, view: (memory) => new Int16Array(memory) },
  { code: 0x0c, name: 'Int32Array', bytes: 4, view: (memory) => new Int32Array(memory) },
  { code: 0x0d, name: 'Float32Array', bytes: 4, view: (memory) => new Float32Array(memory) },
  { code: 0x0e, name: 'Float64Array', bytes: 8, view: (memory) => new Float64Array(memory) },
];

/** Our own limit; the format allows 255. */
const mostDimensions = 16;
/** Bytes of a header with that many dimensions. */
export const longestHeader = 4 + 4 * mostDimensions;

export interface IdxHeader {
  readonly type: IdxType;
  readonly shape: number[];
  /** Bytes of the header. */
  readonly bytes: number;
  /** Bytes of header and elements. */
  readonly totalBytes: number;
}

/** Parses a header. `start` is the whole file, or at least its first `longestHeader` bytes. */
export function parseHeader(start: Buffer, file: string, maxBytes: number): IdxHeader {
  if (start.length < 4) throw idxTruncated(file, 'a header', 4, start.length);
  const type = types.find(({ code }) => code === start[2]);
  if (start[0] !== 0 || start[1] !== 0 || !type) throw notIdx(file, start.toString('hex', 0, 4));
  const dimensions = start[3]!;
  if (dimensions > mostDimensions) throw idxDimensions(file, mostDimensions, dimensions);
  const bytes = 4 + 4 * dimensions;
  if (start.length < bytes) throw idxTruncated(file, 'a header', bytes, start.length);
  const shape = Array.from({ length: dimensions }, (_, i) => start.readUInt32BE(4 + 4 * i));
  // Computed with BigInt, so that no product of sizes from the file can overflow or be rounded.
  const total = shape.reduce((product, size) => product * BigInt(size), BigInt(type.bytes)) + BigInt(bytes);
  if (total > BigInt(maxBytes)) throw idxTooLarge(file, maxBytes, total, shape);
  return { type, shape, bytes, totalBytes: Number(total) };
}

/** Decodes a file. `bytes` is the whole file, inflated; `file` is its path for errors. The result is new memory. */
export function decodeIdx(bytes: Buffer, file: string, maxBytes: number): NdArray<IdxArray> {
  const header = parseHeader(bytes, file, maxBytes);
  const { totalBytes } = header;
  if (bytes.length < totalBytes) throw idxTruncated(file, describe(header), totalBytes, bytes.length);
  if (bytes.length > totalBytes) throw idxTrailing(file, describe(header), totalBytes, `${bytes.length}`);
  const elements = Buffer.from(new ArrayBuffer(totalBytes - header.bytes));
  elements.set(bytes.subarray(header.bytes));
  return decodeElements(header, elements);
}

/**
 * Makes an array of big-endian elements. `elements` is a whole ArrayBuffer, which the result owns and in which the
 * bytes are swapped.
 */
export function decodeElements({ type, shape }: IdxHeader, elements: Buffer): NdArray<IdxArray> {
  swapTo(elements, type.bytes, 'BE');
  return { data: type.view(elements.buffer as ArrayBuffer), shape };
}

export function describe({ type, shape }: IdxHeader): string {
  return `${type.name} [${shape.join(', ')}]`;
}

/** Encodes an array. `file` is used only in error messages. */
export function encodeIdx(array: NdArray<IdxArray>, file: string): Buffer {
  const { data, shape } = (array ?? {}) as Partial<NdArray<IdxArray>>;
  if (!isTypedArray(data) || !Array.isArray(shape))
    throw outOfRange('writeIdx: array', '{ data, shape }: a typed array and a list of sizes', array);
  const type = types.find(({ name }) => name === typeName(data));
  if (!type) throw notWritable(file, 'no IDX type', types.map(({ name }) => name).join(', '), typeName(data));
  if (shape.length > mostDimensions) {
    throw notWritable(file, 'too many dimensions', `at most ${mostDimensions}`, `${shape.length}`);
  }
  const odd = shape.find((size) => !(Number.isInteger(size) && size >= 0 && size < 2 ** 32));
  if (odd !== undefined) throw notWritable(file, 'bad size', `integers from 0 to ${2 ** 32 - 1}`, `${odd}`);
  if (data.length !== elementCount(shape)) {
    const expected = `${elementCount(shape)} elements for [${shape.join(', ')}]`;
    throw notWritable(file, 'shape and data differ', expected, `${data.length}`);
  }
  const headerBytes = 4 + 4 * shape.length;
  const bytes = Buffer.alloc(headerBytes + data.byteLength);
  bytes[2] = type.code;
  bytes[3] = shape.length;
  for (const [i, size] of shape.entries()) bytes.writeUInt32BE(size, 4 + 4 * i);
  const elements = bytes.subarray(headerBytes);
  elements.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  swapTo(elements, type.bytes, 'BE');
  return bytes;
}
