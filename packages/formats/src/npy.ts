// The header of a .npy file: a magic string, a version, the length of the dictionary, and a Python dictionary with
// dtype, order and shape. The file is untrusted: nothing in it is used before it has been checked.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
import { type Accepted, checkWritable, countOf, type ElementType, elementBytes } from './element-types.ts';
import { HeaderError } from './errors.ts';
import { otherFormat } from './other-format.ts';
import { excerpt } from './text.ts';

const magic = Buffer.from('\x93NUMPY', 'latin1');
/** Maximum length of the dictionary. NumPy writes far less for all types that can be read. */
const maxTextBytes = 100_000;
/** Number of bytes at the start of a file that npyHeaderEnd() needs. */
export const npyStartBytes = 12;

/** NumPy's code of each type: its kind and its bytes. NumPy has no code for bfloat16 and floats of 8 bits. */
const npyCodes = {
  float32: 'f4',
  float64: 'f8',
  float16: 'f2',
  int32: 'i4',
  int64: 'i8',
  uint8: 'u1',
  bool: 'b1',
  int8: 'i1',
  int16: 'i2',
  uint16: 'u2',
  uint32: 'u4',
  uint64: 'u8',
} as const satisfies Partial<Record<ElementType, string>>;

/** An element type that npy has a code for. */
export type NpyType = keyof typeof npyCodes;
const npyTypes = Object.keys(npyCodes) as NpyType[];

/** The header of a npy file. */
export interface NpyHeader {
  /** Type of the elements. */
  readonly type: NpyType;
  /** Size of each dimension. */
  readonly shape: readonly number[];
  /** Column-major: the first index runs fastest. */
  readonly isFortran: boolean;
  /** Whether the bytes of an element lie with the highest one first. */
  readonly isBigEndian: boolean;
  /** Offset of the first element in the file. */
  readonly dataStart: number;
}

/**
 * Returns the offset at which the header ends. `start` is the first 12 bytes of the file, or all of a shorter file, and
 * `fileBytes` the length of the file. Throws HeaderError if this is no .npy file or the header is too long.
 */
export function npyHeaderEnd(start: Buffer, fileBytes: number): number {
  const problem = 'it does not begin as a .npy file does';
  if (start.length < npyStartBytes)
    throw new HeaderError(problem, 'a header', `a file of ${start.length} bytes`);
  if (!start.subarray(0, magic.length).equals(magic)) {
    const other = otherFormat(start);
    const fault = other === null ? problem : `it is ${other}, and no .npy file`;
    throw new HeaderError(fault, 'the beginning \\x93NUMPY', start.toString('hex', 0, magic.length));
  }
  const version = start[6]!;
  if (version < 1 || version > 3)
    throw new HeaderError(`format version ${version} is not known`, 'format version 1, 2 or 3', `${version}`);
  const [textStart, textBytes] = version === 1 ? [10, start.readUInt16LE(8)] : [12, start.readUInt32LE(8)];
  const end = textStart + textBytes;
  const mostBytes = Math.min(fileBytes - textStart, maxTextBytes);
  if (textBytes <= mostBytes) return end;
  throw new HeaderError(
    textBytes > maxTextBytes
      ? `the header claims to end at byte ${end}`
      : `the header should end at byte ${end}, but the file at ${fileBytes}`,
    `a header of at most ${mostBytes} bytes`,
    `${textBytes}`,
  );
}

/** The parsed dictionary, and the types that the reader accepts. */
interface Dictionary {
  readonly text: string;
  /** Values by name, as text in Python's notation. */
  readonly members: ReadonlyMap<string, string>;
  /** Accepted types by NumPy's code. */
  readonly codes: ReadonlyMap<string, NpyType>;
}

/** Returns the error for a dictionary without a readable shape or an accepted type. */
const unreadable = ({ codes, text }: Omit<Dictionary, 'members'>, problem: string): HeaderError =>
  new HeaderError(problem, `a shape and one of the types ${[...codes.keys()].join(', ')}`, text);

/** Parses the members of the dictionary. Nested tuples are refused: only types that cannot be read have them. */
function parseDictionary(text: string, codes: Dictionary['codes']): Dictionary {
  if (!text.startsWith('{') || !text.endsWith('}'))
    throw unreadable({ codes, text }, `the header is not a dictionary: ${excerpt(text)}`);
  const members = new Map<string, string>();
  const inside = text.slice(1, -1).trim();
  const member = /'(\w+)'\s*:\s*('[^']*'|True|False|\([^()]*\))\s*(?:,\s*|$)/y;
  while (member.lastIndex < inside.length) {
    const at = member.lastIndex;
    const match = member.exec(inside);
    if (match === null) {
      const rest = excerpt(inside.slice(at), 60);
      throw unreadable({ codes, text }, `the header cannot be read from "${rest}" on`);
    }
    const [, name = '', value = ''] = match;
    if (members.has(name)) {
      const problem = `the header has ${excerpt(name)} twice`;
      throw new HeaderError(problem, 'each member of the header once', `${name} twice`);
    }
    members.set(name, value);
  }
  return { text, members, codes };
}

function memberOf(dictionary: Dictionary, name: string): string {
  const value = dictionary.members.get(name);
  if (value === undefined) throw unreadable(dictionary, `the header has no ${name}`);
  return value;
}

function parseOrder({ text, members }: Dictionary): boolean {
  const order = members.get('fortran_order');
  if (order === 'True' || order === 'False') return order === 'True';
  const problem =
    order === undefined ? 'the header has no fortran_order' : `fortran_order is ${excerpt(order)}`;
  throw new HeaderError(problem, 'fortran_order True or False', text);
}

function parseType(dictionary: Dictionary, descr: string): { type: NpyType; isBigEndian: boolean } {
  const [, order, code = ''] = /^'([<>|=])(\w+)'$/.exec(descr) ?? [];
  const type = dictionary.codes.get(code);
  if (order !== undefined && type !== undefined) return { type, isBigEndian: order === '>' };
  const why = code === 'O' ? ', as Python objects are pickled programs' : '';
  const supported = [...dictionary.codes.keys()].join(', ');
  throw unreadable(dictionary, `dtype ${excerpt(descr)} is not supported${why}; supported are ${supported}`);
}

function parseShape(
  dictionary: Dictionary,
  tuple: string,
  { maxDims = Infinity, needsRows }: Accepted,
): number[] {
  if (!tuple.startsWith('(')) throw unreadable(dictionary, `the shape is ${excerpt(tuple)}`);
  const parts = tuple.slice(1, -1).split(',').map((part) => part.trim()); // biome-ignore format: one thing
  if (parts.at(-1) === '') parts.pop();
  if (!parts.every((part) => /^\d+$/.test(part) && Number.isSafeInteger(Number(part)))) {
    const problem = `the shape is ${excerpt(tuple)}; expected sizes that are integers ≥ 0`;
    throw new HeaderError(problem, 'a shape', tuple);
  }
  if (needsRows && parts.length === 0)
    throw new HeaderError(
      'the shape has no dimensions; expected at least one',
      'at least one dimension',
      'none',
    );
  if (parts.length > maxDims) {
    const problem = `the shape has ${parts.length} dimensions; expected at most ${maxDims}`;
    throw new HeaderError(problem, `at most ${maxDims} dimensions`, `${parts.length}`);
  }
  return parts.map(Number);
}

/**
 * Parses a header. `header` is the file up to npyHeaderEnd(). Throws HeaderError, also if `fileBytes`, the length of
 * the file, is not the length of header and elements together.
 */
export function parseNpyHeader(
  header: Buffer,
  fileBytes: number,
  accepted: Accepted = { types: npyTypes },
): NpyHeader {
  const known = accepted.types.filter((type): type is NpyType => Object.hasOwn(npyCodes, type));
  const codes = new Map(known.map((type) => [npyCodes[type] as string, type]));
  const dictionary = parseDictionary(header.toString('utf8', header[6] === 1 ? 10 : 12).trim(), codes);
  const descr = memberOf(dictionary, 'descr');
  const isFortran = parseOrder(dictionary);
  const tuple = memberOf(dictionary, 'shape');
  const { type, isBigEndian } = parseType(dictionary, descr);
  const shape = parseShape(dictionary, tuple, accepted);
  const dataStart = header.length;
  const bytes = countOf(shape) * elementBytes[type];
  if (bytes !== fileBytes - dataStart) {
    throw new HeaderError(
      `shape ${excerpt(tuple)} of ${descr} needs ${bytes} bytes, but ${fileBytes - dataStart} follow the header`,
      `${dataStart + bytes} bytes for ${descr.slice(1, -1)} [${shape.join(', ')}]`,
      `${fileBytes}`,
    );
  }
  return { type, shape, isFortran, isBigEndian, dataStart };
}

/**
 * Returns a header of version 1 for row-major, little-endian elements, padded so that they begin at a multiple of 64
 * bytes.
 */
export function encodeNpyHeader(type: NpyType, shape: readonly number[]): Buffer {
  checkWritable('an array of npy', { type, shape }, npyTypes);
  const order = elementBytes[type] === 1 ? '|' : '<';
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(', ')})`;
  const text = `{'descr': '${order}${npyCodes[type]}', 'fortran_order': False, 'shape': ${tuple}, }`;
  const bytes = Buffer.alloc(Math.ceil((10 + text.length + 1) / 64) * 64, ' ');
  magic.copy(bytes);
  bytes.set([1, 0], 6);
  bytes.writeUInt16LE(bytes.length - 10, 8);
  bytes.write(text, 10, 'latin1');
  bytes.write('\n', bytes.length - 1);
  return bytes;
}
