// The header of a safetensors file: a JSON object of name → { dtype, shape, data_offsets }, padded with spaces to
// 8 bytes and preceded by its length as u64, little endian. Offsets count from the end of the header; together the
// tensors cover the rest of the file without gaps or overlaps. The file is untrusted: nothing in it is used before it
// has been checked.
// https://github.com/huggingface/safetensors#format
import { type Accepted, checkWritable, countOf, type ElementType, elementBytes } from './element-types.ts';
import { HeaderError } from './errors.ts';
import { JsonProblem, parseJson } from './json.ts';
import { otherFormat } from './other-format.ts';
import { excerpt, quoted } from './text.ts';

/** Longest header in bytes: the format's own limit. */
export const maxSafetensorsHeaderBytes = 100_000_000;
/** Number of bytes at the start of a file that safetensorsHeaderBytes() needs. */
export const safetensorsStartBytes = 8;
const metadataKey = '__metadata__';
/** Maximum nesting of the header. The format needs three levels; what other writers add may be nested deeper. */
const mostDepth = 8;

const codes: Readonly<Record<ElementType, string>> = {
  float32: 'F32',
  float64: 'F64',
  float16: 'F16',
  bfloat16: 'BF16',
  int32: 'I32',
  int64: 'I64',
  uint8: 'U8',
  bool: 'BOOL',
  int8: 'I8',
  int16: 'I16',
  uint16: 'U16',
  uint32: 'U32',
  uint64: 'U64',
  float8e4m3: 'F8_E4M3',
  float8e5m2: 'F8_E5M2',
  float8e4m3fnuz: 'F8_E4M3FNUZ',
  float8e5m2fnuz: 'F8_E5M2FNUZ',
  float8e8m0: 'F8_E8M0',
};
const allTypes = Object.keys(codes) as ElementType[];

/** A tensor of a safetensors file: its type, shape and place. */
export interface SafetensorsEntry {
  /** Name of the tensor. */
  readonly name: string;
  /** Type of the elements. */
  readonly type: ElementType;
  /** The format's word for the type, such as 'F32'. */
  readonly code: string;
  /** Size of each dimension. */
  readonly shape: readonly number[];
  /** Offset of the first byte, from the end of the header. */
  readonly begin: number;
  /** Offset behind the last byte, from the end of the header. */
  readonly end: number;
}

/** The header of a safetensors file. */
export interface SafetensorsHeader {
  /**
   * In the order of the header, except that names such as "0" and "12" come first. They may overlap until
   * safetensorsInOrder() has checked them.
   */
  readonly entries: readonly SafetensorsEntry[];
  /** Texts that the writer of the file has added. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Offset of the first element in the file. */
  readonly dataStart: number;
  /** Bytes of the file behind the header. */
  readonly dataBytes: number;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isSizes = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);

const asJson = (value: unknown): string => JSON.stringify(value) ?? 'undefined';
const shown = (value: unknown): string => excerpt(asJson(value));

/**
 * Returns the length of the header, without the 8 bytes before it. `start` is the first 8 bytes of the file, or all of
 * a shorter file, and `fileBytes` the length of the file. Throws HeaderError if the file cannot hold such a header.
 */
export function safetensorsHeaderBytes(start: Buffer, fileBytes: number): number {
  if (start.length < safetensorsStartBytes) {
    const problem = 'ends inside the header length; the file is truncated';
    throw new HeaderError(problem, 'a header', `a file of ${start.length} bytes`);
  }
  const headerBytes = start.readBigUInt64LE();
  const mostBytes = Math.min(maxSafetensorsHeaderBytes, fileBytes - safetensorsStartBytes);
  if (headerBytes <= mostBytes) return Number(headerBytes);
  const other = otherFormat(start);
  if (other !== null) {
    throw new HeaderError(
      `it is ${other}, and no safetensors file; save weights in Python by save_file() of safetensors.torch`,
      'a safetensors file',
      other,
    );
  }
  throw new HeaderError(
    `the header claims ${headerBytes} bytes, but at most ${mostBytes} are possible (is this a safetensors file?)`,
    `a header of at most ${mostBytes} bytes`,
    `${headerBytes}`,
  );
}

function parseText(header: Buffer): Record<string, unknown> {
  const noJson = (problem: string, cause: unknown): HeaderError =>
    new HeaderError(problem, 'a header of JSON', (cause as Error).message, cause);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(header);
  } catch (error) {
    throw noJson('the header is not UTF-8', error);
  }
  let json: unknown;
  try {
    json = parseJson(text, mostDepth);
  } catch (error) {
    const { message } = error as Error;
    throw noJson(
      error instanceof JsonProblem
        ? `the header cannot be right: ${message}`
        : `the header is not JSON (${excerpt(message)})`,
      error,
    );
  }
  if (isObject(json)) return json;
  throw new HeaderError('the header is not a JSON object', 'a header that is an object', 'another value');
}

function parseMetadata(value: unknown): Record<string, string> {
  if (value === undefined) return {};
  if (isObject(value) && Object.values(value).every((text) => typeof text === 'string'))
    return value as Record<string, string>;
  const what = 'an object of strings';
  throw new HeaderError(`${metadataKey} is not ${what}`, `${metadataKey} to be ${what}`, asJson(value));
}

/** The rules that entries are checked against. */
interface Limits extends Accepted {
  readonly byCode: ReadonlyMap<string, ElementType>;
  readonly dataStart: number;
  readonly dataBytes: number;
}

function parseType(name: string, value: unknown, byCode: Limits['byCode']): ElementType {
  const code = isObject(value) ? value.dtype : undefined;
  const type = typeof code === 'string' ? byCode.get(code) : undefined;
  if (type !== undefined) return type;
  const known = [...byCode.keys()].join(', ');
  const expected = `a type of ${known} for "${name}"`;
  if (!isObject(value))
    throw new HeaderError(`tensor ${quoted(name)} is not described by an object`, expected, asJson(value));
  const problem = `tensor ${quoted(name)} has dtype ${shown(code)}; supported are ${known}`;
  throw new HeaderError(problem, expected, typeof code === 'string' ? code : asJson(code));
}

function parseShape(name: string, shape: unknown, { maxDims = Infinity, needsRows }: Accepted): number[] {
  const label = quoted(name);
  const expected = `a shape${needsRows ? ' of at least one dimension' : ''} for "${name}"`;
  if (!isSizes(shape)) {
    const problem = `tensor ${label} has shape ${shown(shape)}; expected sizes that are integers ≥ 0`;
    throw new HeaderError(problem, expected, asJson(shape));
  }
  if (needsRows && shape.length === 0)
    throw new HeaderError(`tensor ${label} has no dimensions; expected at least one`, expected, '[]');
  if (shape.length <= maxDims) return shape;
  const problem = `tensor ${label} has ${shape.length} dimensions; expected at most ${maxDims}`;
  throw new HeaderError(problem, `at most ${maxDims} dimensions for "${name}"`, `${shape.length}`);
}

function parseEntry(name: string, value: unknown, limits: Limits): SafetensorsEntry {
  const { dataStart, dataBytes } = limits;
  const type = parseType(name, value, limits.byCode);
  const code = codes[type];
  const fields = value as Record<string, unknown>;
  const offsets = fields.data_offsets;
  const shape = parseShape(name, fields.shape, limits);
  const bytes = countOf(shape) * elementBytes[type];
  const label = quoted(name);
  const wrongRange = (problem: string): HeaderError =>
    new HeaderError(problem, `a range of ${bytes} bytes for "${name}"`, asJson(offsets));
  if (!isSizes(offsets) || offsets.length !== 2)
    throw wrongRange(`tensor ${label} has data_offsets ${shown(offsets)}; expected two integers ≥ 0`);
  const [begin, end] = offsets as [number, number];
  if (begin > end || end > dataBytes) {
    const where = `outside the ${dataBytes} bytes of data (is the file truncated?)`;
    const problem = `tensor ${label} lies at ${begin} to ${end}, ${where}`;
    if (end - begin !== bytes) throw wrongRange(problem);
    const fileBytes = dataStart + dataBytes;
    throw new HeaderError(
      problem,
      `${dataStart + end} bytes with "${name}" in them`,
      `a file of ${fileBytes}`,
    );
  }
  if (end - begin !== bytes) {
    const held = `but data_offsets hold ${end - begin}`;
    throw wrongRange(`tensor ${label} with ${code} ${shown(shape)} needs ${bytes} bytes, ${held}`);
  }
  return { name, type, code, shape, begin, end };
}

/**
 * Parses a header. `header` is without the 8 bytes before it; `fileBytes` is the length of the file.
 * Throws HeaderError, also if a tensor lies outside the file. safetensorsInOrder() checks that the tensors cover the
 * file.
 */
export function parseSafetensorsHeader(
  header: Buffer,
  fileBytes: number,
  accepted: Accepted = { types: allTypes },
): SafetensorsHeader {
  const json = parseText(header);
  const dataStart = safetensorsStartBytes + header.length;
  const dataBytes = fileBytes - dataStart;
  const byCode = new Map(accepted.types.map((type) => [codes[type], type]));
  const limits: Limits = { ...accepted, byCode, dataStart, dataBytes };
  const metadata = parseMetadata(json[metadataKey]);
  const entries = Object.entries(json)
    .filter(([name]) => name !== metadataKey)
    .map(([name, value]) => parseEntry(name, value, limits));
  return { entries, metadata, dataStart, dataBytes };
}

/**
 * Returns the entries in the order in which they lie in the file. Throws HeaderError unless they cover all of it,
 * each byte once, as the format demands.
 */
export function safetensorsInOrder({ entries, dataStart, dataBytes }: SafetensorsHeader): SafetensorsEntry[] {
  const inOrder = entries.toSorted((a, b) => a.begin - b.begin || a.end - b.end);
  let covered = 0;
  for (const { name, begin, end } of inOrder) {
    if (begin !== covered) {
      const problem =
        begin < covered
          ? `tensor ${quoted(name)} at ${begin} overlaps the one before, which ends at ${covered}`
          : `${begin - covered} bytes before tensor ${quoted(name)} belong to no tensor`;
      const expected = `"${name}" at byte ${dataStart + covered}, behind the tensor before`;
      throw new HeaderError(problem, expected, `${dataStart + begin}`);
    }
    covered = end;
  }
  if (covered === dataBytes) return inOrder;
  throw new HeaderError(
    `${dataBytes - covered} bytes at the end belong to no tensor`,
    `${dataStart + covered} bytes, the end of the last tensor`,
    `a file of ${dataStart + dataBytes}`,
  );
}

/** A tensor that is to be written. */
interface Planned {
  readonly dtype: ElementType;
  readonly shape: readonly number[];
}

/**
 * Returns the entries of the tensors of a new file, in the order in which they must be written: wider types first, so
 * that every tensor is aligned, and by name within a type's width.
 */
export function planSafetensors(tensors: Readonly<Record<string, Planned>>): SafetensorsEntry[] {
  const types = Object.keys(codes);
  for (const [name, { dtype: type, shape }] of Object.entries(tensors))
    checkWritable(`tensor ${quoted(name)}`, { type, shape }, types);
  let offset = 0;
  return Object.entries(tensors)
    .sort(([a, x], [b, y]) => elementBytes[y.dtype] - elementBytes[x.dtype] || (a < b ? -1 : 1))
    .map(([name, { dtype, shape }]) => {
      const begin = offset;
      offset += countOf(shape) * elementBytes[dtype];
      return { name, type: dtype, code: codes[dtype], shape, begin, end: offset };
    });
}

/**
 * Returns the start of a new file: the header's length and the header. `entries` come from planSafetensors(); none may
 * be named "__metadata__". The elements that follow must be little-endian.
 */
export function encodeSafetensorsHeader(
  entries: readonly SafetensorsEntry[],
  metadata?: Readonly<Record<string, string>>,
): Buffer {
  const json: [string, unknown][] = metadata ? [[metadataKey, metadata]] : [];
  for (const { name, code, shape, begin, end } of entries) {
    json.push([name, { dtype: code, shape, data_offsets: [begin, end] }]);
  }
  const text = Buffer.from(JSON.stringify(Object.fromEntries(json)));
  const bytes = Buffer.alloc(safetensorsStartBytes + Math.ceil(text.length / 8) * 8, ' ');
  bytes.writeBigUInt64LE(BigInt(bytes.length - safetensorsStartBytes));
  text.copy(bytes, safetensorsStartBytes);
  return bytes;
}
