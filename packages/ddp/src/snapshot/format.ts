// A snapshot file: "RINGSNP1", the length of the header as uint64 (little endian), the header as JSON, the memory of all
// arrays (each from a multiple of 64 bytes), and the SHA-256 of everything before it. In the header an array stands as
// { "$array": … }, a tensor as { "$tensor": … }, a bigint as { "$bigint": … }.
import { createHash } from 'node:crypto';
import {
  asBuffer,
  type BufferLike,
  type BufferView,
  bufferSymbol,
  byteSize,
  type DType,
  elementsOf,
  type TypedArray,
} from '@ringwise/collectives';
import { badSnapshot, notSavable } from '../errors.ts';
import { bytesOf } from '../memory.ts';

/** What a tensor of a snapshot is read as. */
export interface SnapshotTensor {
  readonly data: TypedArray;
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/** Makes what takes the place of a tensor. */
export type Revive = (tensor: SnapshotTensor) => unknown;

interface Stored {
  readonly dtype: DType;
  readonly offset: number;
  readonly count: number;
  readonly shape?: readonly number[];
}

const magic = Buffer.from('RINGSNP1');
const alignment = 64;
const hashBytes = 32;
const aligned = (bytes: number) => Math.ceil(bytes / alignment) * alignment;

/** The pieces of a file, in order. Arrays are not copied. */
export function encodeSnapshot(value: unknown): Uint8Array[] {
  const memory: Uint8Array[] = [];
  let end = 0;
  const store = ({ dtype, count, host }: BufferView, path: string): Stored => {
    if (host === null) throw notSavable(path, 'memory that JavaScript cannot read');
    const bytes = bytesOf(host);
    const offset = end;
    memory.push(bytes, new Uint8Array(aligned(bytes.length) - bytes.length));
    end += aligned(bytes.length);
    return { dtype, offset, count };
  };
  const visit = (item: unknown, path: string): unknown => {
    if (typeof item === 'bigint') return { $bigint: String(item) };
    if (item === null || typeof item === 'string' || typeof item === 'boolean') return item;
    if (typeof item === 'number') {
      if (!Number.isFinite(item)) throw notSavable(path, String(item));
      return item;
    }
    if (typeof item !== 'object') throw notSavable(path, typeof item);
    if (ArrayBuffer.isView(item))
      return { $array: store(asBuffer(item as BufferLike, 'saveSnapshot'), path) };
    if (bufferSymbol in item) {
      const view = asBuffer(item as BufferLike, 'saveSnapshot');
      const { shape = [view.count] } = item as { shape?: readonly number[] };
      return { $tensor: { ...store(view, path), shape } };
    }
    if (Array.isArray(item)) return item.map((each, i) => visit(each, `${path}[${i}]`));
    const entries = Object.entries(item).filter(([, each]) => each !== undefined);
    return Object.fromEntries(entries.map(([key, each]) => [key, visit(each, `${path}.${key}`)]));
  };
  const header = Buffer.from(JSON.stringify(visit(value, 'state')));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const start = magic.length + length.length + header.length;
  const pieces = [magic, length, header, new Uint8Array(aligned(start) - start), ...memory];
  const hash = createHash('sha256');
  for (const piece of pieces) hash.update(piece);
  return [...pieces, hash.digest()];
}

/** Throws ERR_DDP_SNAPSHOT for anything but a whole, undamaged snapshot. Memory is copied out of `file`. */
export function decodeSnapshot(file: Uint8Array, name: string, revive: Revive): unknown {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const smallest = magic.length + 8 + hashBytes;
  if (bytes.length < smallest || !bytes.subarray(0, magic.length).equals(magic)) {
    throw badSnapshot(name, 'it does not begin like a snapshot');
  }
  const content = bytes.subarray(0, bytes.length - hashBytes);
  if (!createHash('sha256').update(content).digest().equals(bytes.subarray(content.length))) {
    throw badSnapshot(name, 'its checksum does not fit its content');
  }
  const start = magic.length + 8;
  const end = start + Number(content.readBigUInt64LE(magic.length));
  const memory = content.subarray(aligned(end));
  const load = ({ dtype, offset, count }: Stored): TypedArray => {
    const part = Uint8Array.from(memory.subarray(offset, offset + count * byteSize(dtype)));
    const device = { kind: 'cpu', index: 0 } as const;
    return elementsOf({ dtype, count, device, host: part, handle: null }) as TypedArray;
  };
  return JSON.parse(content.toString('utf8', start, end), (_, item: unknown) => {
    if (typeof item !== 'object' || item === null) return item;
    if ('$bigint' in item) return BigInt(item.$bigint as string);
    if ('$array' in item) return load(item.$array as Stored);
    if (!('$tensor' in item)) return item;
    const stored = item.$tensor as Required<Stored>;
    return revive({ data: load(stored), dtype: stored.dtype, shape: stored.shape });
  });
}
