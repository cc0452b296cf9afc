// The header of a .npy file: a magic string, a version, its own length, and a Python dictionary with dtype, order and
// shape. It comes from outside: nothing in it is believed before it has been checked.
import { check, excerpt } from '@ringwise/formats';
import { bytesOf, type DType } from '../../core/dtype.ts';
import { countOf, mostDims, type Shape } from '../../core/shape.ts';
import { type StoredType, storedTypes } from '../stored-types.ts';

const magic = Buffer.from('\x93NUMPY', 'latin1');
/** numpy writes far less; longer ones are nothing that we could read. */
const maxHeaderBytes = 100_000;

/** NumPy's kind and size. bfloat16 has none. */
const codeOf: Readonly<Record<Exclude<DType, 'bfloat16'>, string>> = {
  float32: 'f4',
  float64: 'f8',
  float16: 'f2',
  int32: 'i4',
  int64: 'i8',
  uint8: 'u1',
  bool: 'b1',
};

/** What can be read, by NumPy's kind and size. */
const readable: Readonly<Record<string, StoredType>> = {
  ...Object.fromEntries(Object.entries(codeOf).map(([dtype, code]) => [code, storedTypes[dtype as DType]])),
  i1: storedTypes.int8,
  i2: storedTypes.int16,
  u2: storedTypes.uint16,
  u4: storedTypes.uint32,
  u8: storedTypes.uint64,
};

export interface NpyHeader {
  readonly type: StoredType;
  readonly shape: Shape;
  /** Column-major: the first index runs fastest. */
  readonly isFortran: boolean;
  readonly isBigEndian: boolean;
  /** Where the elements begin, in bytes. */
  readonly dataStart: number;
}

/** The header's members as Python wrote them. Tuples are not nested in the dtypes that we read. */
function members(header: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const text = header.trim();
  const isDictionary = text.startsWith('{') && text.endsWith('}');
  check(isDictionary, `the header is not a dictionary: ${excerpt(text)}`);
  const inside = text.slice(1, -1).trim();
  const member = /'(\w+)'\s*:\s*('[^']*'|True|False|\([^()]*\))\s*(?:,\s*|$)/y;
  while (member.lastIndex < inside.length) {
    const at = member.lastIndex;
    const match = member.exec(inside);
    check(match !== null, `the header cannot be read from "${excerpt(inside.slice(at), 60)}" on`);
    const [, name = '', value = ''] = match;
    check(!found.has(name), `the header has ${excerpt(name)} twice`);
    found.set(name, value);
  }
  return found;
}

function parseType(descr: string): { type: StoredType; isBigEndian: boolean } {
  const [, order, code = ''] = /^'([<>|=])(\w+)'$/.exec(descr) ?? [];
  const why = code === 'O' ? ', as Python objects are pickled programs' : '';
  check(
    order !== undefined && Object.hasOwn(readable, code),
    `dtype ${excerpt(descr)} is not supported${why}; supported are ${Object.keys(readable).join(', ')}`,
  );
  return { type: readable[code]!, isBigEndian: order === '>' };
}

function parseShape(tuple: string): Shape {
  const parts = tuple.slice(1, -1).split(',').map((part) => part.trim()); // biome-ignore format: one thing
  if (parts.at(-1) === '') parts.pop();
  const isRight = parts.every((part) => /^\d+$/.test(part) && Number.isSafeInteger(Number(part)));
  check(isRight, `the shape is ${excerpt(tuple)}; expected sizes that are integers ≥ 0`);
  check(parts.length <= mostDims, `the shape has ${parts.length} dimensions; expected at most ${mostDims}`);
  return parts.map(Number);
}

/** Where the header ends, from the first 12 bytes of a file. */
export function headerEnd(start: Buffer): number {
  check(start.length >= 12 && start.subarray(0, 6).equals(magic), 'it does not begin as a .npy file does');
  const version = start[6]!;
  check(version >= 1 && version <= 3, `format version ${version} is not known`);
  const end = version === 1 ? 10 + start.readUInt16LE(8) : 12 + start.readUInt32LE(8);
  check(end <= maxHeaderBytes, `the header claims to end at byte ${end}`);
  return end;
}

/** `header`: the file up to headerEnd. `fileBytes`: its whole length, which the elements must fill. */
export function parseHeader(header: Buffer, fileBytes: number): NpyHeader {
  const textStart = header[6] === 1 ? 10 : 12;
  const found = members(header.toString('utf8', textStart));
  const [descr, order, tuple] = ['descr', 'fortran_order', 'shape'].map((name) => {
    const value = found.get(name);
    check(value !== undefined, `the header has no ${name}`);
    return value;
  }) as [string, string, string];
  check(order === 'True' || order === 'False', `fortran_order is ${excerpt(order)}`);
  const { type, isBigEndian } = parseType(descr);
  check(tuple.startsWith('('), `the shape is ${excerpt(tuple)}`);
  const shape = parseShape(tuple);
  const bytes = countOf(shape) * type.bytes;
  const there = fileBytes - header.length;
  check(
    bytes === there,
    `shape ${excerpt(tuple)} of ${descr} needs ${bytes} bytes, but ${there} follow the header`,
  );
  return { type, shape, isFortran: order === 'True', isBigEndian, dataStart: header.length };
}

/** A header of version 1, padded so that the elements begin at a multiple of 64 bytes. */
export function encodeHeader(dtype: DType, shape: Shape): Buffer {
  check(dtype !== 'bfloat16', "NumPy has no bfloat16; use .to('float32'), or safetensors, which keeps it");
  const code = codeOf[dtype];
  const order = bytesOf(dtype) === 1 ? '|' : '<';
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(', ')})`;
  const text = `{'descr': '${order}${code}', 'fortran_order': False, 'shape': ${tuple}, }`;
  const bytes = Buffer.alloc(Math.ceil((10 + text.length + 1) / 64) * 64, ' ');
  magic.copy(bytes);
  bytes.set([1, 0], 6);
  bytes.writeUInt16LE(bytes.length - 10, 8);
  bytes.write(text, 10, 'latin1');
  bytes.write('\n', bytes.length - 1);
  return bytes;
}
