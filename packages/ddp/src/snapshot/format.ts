// The format of a snapshot file: "RINGSNP1", the length of the header as uint64 (little endian), the header
// as JSON, the memory of all arrays (each aligned to 64 bytes), and the SHA-256 of everything before it. In
// the header an array is { "$array": … }, a tensor { "$tensor": … }, a bigint { "$bigint": … }, a number that
// JSON does not have { "$number": "Infinity" }, and a value that differs between ranks { "$perRank": … }.
import {
  asBuffer,
  type BufferLike,
  bufferSymbol,
  byteSize,
  type DType,
  elementsOf,
  type TypedArray,
} from '@ringwise/collectives';
import { badSnapshot, notItsState, notSavable } from '../errors.ts';
import { bytesOf } from '../reducer/memory.ts';
import { below, type GatheredValues, ownStateOf, type StoredPerRank, valueForRank } from './own-state.ts';

/** A tensor as it is read from a snapshot. */
export interface SnapshotTensor {
  /** The elements, row by row; for 16-bit floats their bits. */
  readonly data: TypedArray;
  /** Type of the elements. */
  readonly dtype: DType;
  /** Size of each dimension. */
  readonly shape: readonly number[];
}

/** Returns the value that replaces a tensor. */
export type Revive = (tensor: SnapshotTensor) => unknown;

interface Stored {
  readonly dtype: DType;
  readonly offset: number;
  readonly count: number;
  /** Shape, for tensors only. */
  readonly shape?: readonly number[];
}

/** The members of a tensor that saving uses. */
interface Savable {
  readonly shape?: readonly number[];
  /** Resolves with a copy in host memory, for tensors that JavaScript cannot access. */
  readonly data?: () => Promise<ArrayBufferView>;
}

export const magic = Buffer.from('RINGSNP1');
/** Number of bytes before the header, and of the hash at the end. */
export const headBytes = magic.length + 8;
export const hashBytes = 32;
const alignment = 64;
export const aligned = (bytes: number): number => Math.ceil(bytes / alignment) * alignment;

/**
 * Collects the memory of arrays and tensors: their offsets in bytes from the first array, and functions that read their
 * bytes.
 */
class Arrays {
  readonly reads: (() => Promise<Uint8Array> | Uint8Array)[] = [];
  /** The objects that the current item is part of. */
  readonly open = new Set<object>();
  readonly locations: { readonly offset: number; readonly bytes: number }[] = [];
  #end = 0;

  get end(): number {
    return this.#end;
  }

  add(item: BufferLike, path: string): Stored {
    const { dtype, count, host } = asBuffer(item, 'saveSnapshot');
    const { data } = item as Savable;
    const bytes = count * byteSize(dtype);
    if (host !== null) this.reads.push(() => bytesOf(host));
    else if (data === undefined) throw notSavable(path, 'memory that JavaScript cannot read, without data()');
    else this.reads.push(async () => whole(bytesOf(await data.call(item)), bytes, path));
    const offset = this.#end;
    this.#end += aligned(bytes);
    this.locations.push({ offset, bytes });
    return { dtype, offset, count };
  }
}

const marks = ['$array', '$tensor', '$bigint', '$number', '$perRank'];

/** The numbers that JSON does not have, as text. Number() parses them. */
export const numbersOutsideJson: readonly string[] = ['Infinity', '-Infinity', 'NaN', '-0'];

type OwnValues = ReadonlyMap<string, GatheredValues> | null;

/**
 * Returns the header's form of `item`. `own` maps a path to the values of all ranks. While one of these values is
 * encoded, `own` is null.
 */
function headerOf(item: unknown, path: string, arrays: Arrays, own: OwnValues): unknown {
  if (typeof item === 'bigint') return { $bigint: String(item) };
  if (item === null || typeof item === 'string' || typeof item === 'boolean') return item;
  if (typeof item === 'number') {
    const text = Object.is(item, -0) ? '-0' : String(item);
    return numbersOutsideJson.includes(text) ? { $number: text } : item;
  }
  if (typeof item !== 'object') throw notSavable(path, typeof item);
  if (ArrayBuffer.isView(item)) return { $array: arrays.add(item as BufferLike, path) };
  if (bufferSymbol in item) {
    const stored = arrays.add(item as BufferLike, path);
    return { $tensor: { ...stored, shape: (item as Savable).shape ?? [stored.count] } };
  }
  const state = own && ownStateOf(item);
  if (state) {
    const { values: given, isShared } = own.get(path)!;
    const values = given.map((value) => headerOf(value, path, arrays, null));
    return isShared ? values[0] : { $perRank: { kind: state.kind, path, values } };
  }
  const method = ['stateDict', 'state'].find(
    (name) => typeof (item as Record<string, unknown>)[name] === 'function',
  );
  if (method !== undefined) throw notItsState(path, method);
  if (arrays.open.has(item)) throw notSavable(path, 'an object that contains itself');
  arrays.open.add(item);
  const header = membersOf(item, path, arrays, own);
  arrays.open.delete(item);
  return header;
}

function membersOf(item: object, path: string, arrays: Arrays, own: OwnValues): unknown {
  if (Array.isArray(item)) return item.map((each, i) => headerOf(each, `${path}[${i}]`, arrays, own));
  const kind = Object.prototype.toString.call(item).slice('[object '.length, -1);
  if (kind !== 'Object') throw notSavable(path, kind);
  const entries = Object.entries(item).filter(([, each]) => each !== undefined);
  const mark = entries.find(([key]) => marks.includes(key));
  if (mark) throw notSavable(path, `a member ${mark[0]}, which means something else in a snapshot`);
  return Object.fromEntries(
    entries.map(([key, each]) => [key, headerOf(each, below(item, path, key), arrays, own)]),
  );
}

/**
 * Yields the pieces of a file up to the checksum, in order. Arrays are not copied; device memory is copied to
 * the host one tensor at a time. Throws before the first piece if something cannot be saved, and later only
 * if data() of a tensor fails or returns another number of bytes. `own` has the values saved for each rank, by path.
 */
export async function* encodeSnapshot(
  state: unknown,
  own: ReadonlyMap<string, GatheredValues>,
): AsyncGenerator<Uint8Array, void> {
  const arrays = new Arrays();
  const header = Buffer.from(JSON.stringify(headerOf(state, 'state', arrays, own)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  yield* [magic, length, header, padding(headBytes + header.length)];
  for (const read of arrays.reads) {
    const bytes = await read();
    yield bytes;
    yield padding(bytes.length);
  }
}

/** A state as a header, and the memory of its arrays in the order of the header's offsets. */
export interface PackedState {
  /** The state as JSON, with a placeholder for each array. */
  readonly header: string;
  /** Number of bytes of the whole memory; each array begins at a multiple of 64. */
  readonly bytes: number;
  /** The arrays of the state, with their locations in the packed memory. */
  readonly arrays: readonly {
    readonly offset: number;
    readonly bytes: number;
    /** Returns the array's bytes: its own memory if JavaScript can access it, else a copy. */
    readonly read: () => Promise<Uint8Array> | Uint8Array;
  }[];
}

/**
 * Describes a state that saveSnapshot() accepts, for a transfer between ranks. Copies nothing. Unlike a snapshot it
 * contains this rank's state only, also where ranks differ. Throws ERR_DDP_INVALID if a part cannot be sent.
 */
export function packState(state: unknown): PackedState {
  const arrays = new Arrays();
  const header = JSON.stringify(headerOf(state, 'state', arrays, null));
  const list = arrays.reads.map((read, i) => ({ ...arrays.locations[i]!, read }));
  return { header, bytes: arrays.end, arrays: list };
}

/** Destinations for the arrays of a packed state, and the function that returns the state once they are filled. */
export interface UnpackedState {
  /** Locations of the arrays in the packed memory. */
  readonly arrays: readonly Extent[];
  /** Returns the value, after the bytes have been filled in. */
  readonly value: () => unknown;
}

/**
 * Reads the header that packState() has made. Fill all arrays, then call value(). `revive` returns the replacement of a
 * tensor; by default its memory, dtype and shape.
 */
export function unpackState(header: string, revive: Revive = (tensor) => tensor): UnpackedState {
  const { extents, value } = parseHeader(header, revive, { rank: 0, size: 1 });
  return { arrays: extents, value };
}

const padding = (bytes: number) => new Uint8Array(aligned(bytes) - bytes);

function whole(bytes: Uint8Array, expected: number, path: string): Uint8Array {
  if (bytes.length === expected) return bytes;
  throw notSavable(path, `data() of ${bytes.length} bytes where the tensor has ${expected}`);
}

/** The location of an array or tensor of a parsed header. */
export interface Extent {
  /** Offset of the first byte. */
  readonly offset: number;
  /** Number of bytes. */
  readonly bytes: number;
  /** Receives the bytes from the file and owns them from then on. */
  readonly fill: (bytes: Uint8Array) => void;
}

/**
 * Parses a header. Returns the extents of the arrays in file order, the same on all ranks, and a function
 * that returns the state for this rank once all of them have been filled.
 */
export function parseHeader(
  text: string,
  revive: Revive,
  { rank, size }: { readonly rank: number; readonly size: number },
): { extents: Extent[]; value: () => unknown } {
  const extents: Extent[] = [];
  const values = new Map<object, unknown>();
  const keyFor = ({ dtype, offset, count, shape }: Stored): object => {
    const key = {};
    const fill = (host: Uint8Array) => {
      const cpu = { kind: 'cpu', index: 0 } as const;
      const data = elementsOf({ dtype, count, device: cpu, host, handle: null }) as TypedArray;
      values.set(key, shape === undefined ? data : revive({ data, dtype, shape }));
    };
    extents.push({ offset, bytes: count * byteSize(dtype), fill });
    return key;
  };
  const tree: unknown = JSON.parse(text, (_, item: unknown) => {
    if (typeof item !== 'object' || item === null) return item;
    if ('$bigint' in item) return BigInt(item.$bigint as string);
    if ('$number' in item) return Number(item.$number);
    if ('$array' in item) return keyFor(item.$array as Stored);
    if ('$perRank' in item) return valueForRank(item.$perRank as StoredPerRank, rank, size);
    return '$tensor' in item ? keyFor(item.$tensor as Stored) : item;
  });
  const filled = (item: unknown): unknown => {
    if (typeof item !== 'object' || item === null) return item;
    if (values.has(item)) return values.get(item);
    if (Array.isArray(item)) return item.map(filled);
    return Object.fromEntries(Object.entries(item).map(([key, each]) => [key, filled(each)]));
  };
  extents.sort((a, b) => a.offset - b.offset);
  return { extents, value: () => filled(tree) };
}

/**
 * Returns the length of the header. Throws ERR_DDP_SNAPSHOT if a file of `bytes` bytes does not begin with a snapshot's
 * magic, or is too short for one or for this header.
 */
export function headerLength(head: Buffer, bytes: number, name: string): number {
  if (!head.subarray(0, magic.length).equals(magic)) {
    throw badSnapshot(name, 'it does not begin like a snapshot');
  }
  if (bytes < headBytes + hashBytes) throw badSnapshot(name, `it ends after ${bytes} bytes`);
  const length = Number(head.readBigUInt64LE(magic.length));
  if (length <= bytes - headBytes - hashBytes) return length;
  throw badSnapshot(name, `its header claims ${length} bytes of a file of ${bytes}`);
}
