// The header of a safetensors file: a JSON object of name → { dtype, shape, data_offsets }, padded with spaces to
// 8 bytes and preceded by its length as u64, little endian. Offsets count from the end of the header; together the
// tensors cover the rest of the file without gaps or overlaps. A header comes from outside: nothing in it is
// believed before it has been checked.
import { excerpt, JsonProblem, parseJson, quoted } from '@ringwise/formats';
import { bytesOf, type DType, dtypes } from '../../core/dtype.ts';
import { countOf, mostDims } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { type StoredType, storedTypes } from '../stored-types.ts';

/** The format's own limit. */
export const maxHeaderBytes = 100_000_000;
const metadataKey = '__metadata__';
/** Two are needed, and what others add to an entry may be an object. */
const mostDepth = 8;

const codeOf: Readonly<Record<DType, string>> = {
  float32: 'F32',
  float64: 'F64',
  float16: 'F16',
  bfloat16: 'BF16',
  int32: 'I32',
  int64: 'I64',
  uint8: 'U8',
  bool: 'BOOL',
};

/** What can be read, by the file's code. */
export const readable: Readonly<Record<string, StoredType>> = {
  ...Object.fromEntries(dtypes.map((dtype) => [codeOf[dtype], storedTypes[dtype]])),
  I8: storedTypes.int8,
  I16: storedTypes.int16,
  U16: storedTypes.uint16,
  U32: storedTypes.uint32,
  U64: storedTypes.uint64,
  F8_E4M3: storedTypes.float8e4m3,
  F8_E5M2: storedTypes.float8e5m2,
  F8_E4M3FNUZ: storedTypes.float8e4m3fnuz,
  F8_E5M2FNUZ: storedTypes.float8e5m2fnuz,
  F8_E8M0: storedTypes.float8e8m0,
};

export interface Entry {
  readonly name: string;
  /** Of the tensor that it is read into. */
  readonly dtype: DType;
  /** The file's code of the type. */
  readonly stored: string;
  readonly shape: readonly number[];
  /** Bytes from the end of the header. */
  readonly begin: number;
  readonly end: number;
}

export interface Header {
  readonly entries: readonly Entry[];
  readonly metadata: Readonly<Record<string, string>>;
}

/** What is wrong with a header, as the end of a sentence. */
export class HeaderProblem extends Error {}

function check(isTrue: boolean, problem: string): asserts isTrue {
  if (!isTrue) throw new HeaderProblem(problem);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isSize = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** A value of the header, as part of a sentence. */
const shown = (value: unknown): string => excerpt(JSON.stringify(value) ?? 'undefined');

function parseEntry(key: string, value: unknown, dataBytes: number): Entry {
  const name = quoted(key);
  check(isObject(value), `tensor ${name} is not described by an object`);
  const { dtype: code, shape, data_offsets: offsets } = value;
  check(
    typeof code === 'string' && Object.hasOwn(readable, code),
    `tensor ${name} has dtype ${shown(code)}; supported are ${Object.keys(readable).join(', ')}`,
  );
  check(
    Array.isArray(shape) && shape.every(isSize),
    `tensor ${name} has shape ${shown(shape)}; expected sizes that are integers ≥ 0`,
  );
  check(
    shape.length <= mostDims,
    `tensor ${name} has ${shape.length} dimensions; expected at most ${mostDims}`,
  );
  check(
    Array.isArray(offsets) && offsets.length === 2 && offsets.every(isSize),
    `tensor ${name} has data_offsets ${shown(offsets)}; expected two integers ≥ 0`,
  );
  const [begin, end] = offsets as [number, number];
  check(
    begin <= end && end <= dataBytes,
    `tensor ${name} lies at ${begin} to ${end}, outside the ${dataBytes} bytes of data (is the file truncated?)`,
  );
  const { dtype, bytes: width } = readable[code]!;
  const bytes = countOf(shape) * width;
  check(
    bytes === end - begin,
    `tensor ${name} with ${code} ${shown(shape)} needs ${bytes} bytes, but data_offsets hold ${end - begin}`,
  );
  return { name: key, dtype, stored: code, shape, begin, end };
}

function parseMetadata(value: unknown): Record<string, string> {
  if (value === undefined) return {};
  const isText = isObject(value) && Object.values(value).every((text) => typeof text === 'string');
  check(isText, `${metadataKey} is not an object of strings`);
  return value as Record<string, string>;
}

/** `dataBytes`: what the file holds after the header. Throws HeaderProblem. Entries come back in file order. */
export function parseHeader(text: string, dataBytes: number): Header {
  let json: unknown;
  try {
    json = parseJson(text, mostDepth);
  } catch (error) {
    if (error instanceof JsonProblem) throw new HeaderProblem(`the header cannot be right: ${error.message}`);
    throw new HeaderProblem(`the header is not JSON (${(error as Error).message})`, { cause: error });
  }
  check(isObject(json), 'the header is not a JSON object');
  const entries = Object.entries(json)
    .filter(([name]) => name !== metadataKey)
    .map(([name, value]) => parseEntry(name, value, dataBytes))
    .sort((a, b) => a.begin - b.begin || a.end - b.end);
  let covered = 0;
  for (const { name, begin, end } of entries) {
    check(
      begin >= covered,
      `tensor ${quoted(name)} at ${begin} overlaps the one before, which ends at ${covered}`,
    );
    check(begin === covered, `${begin - covered} bytes before tensor ${quoted(name)} belong to no tensor`);
    covered = end;
  }
  check(covered === dataBytes, `${dataBytes - covered} bytes at the end belong to no tensor`);
  return { entries, metadata: parseMetadata(json[metadataKey]) };
}

/** Wider dtypes first, so that every tensor is aligned; then by name. */
export function planEntries(tensors: Readonly<Record<string, Tensor>>): Entry[] {
  let offset = 0;
  return Object.entries(tensors)
    .sort(([a, x], [b, y]) => bytesOf(y.dtype) - bytesOf(x.dtype) || (a < b ? -1 : 1))
    .map(([name, { dtype, shape, count }]) => {
      const begin = offset;
      offset += count * bytesOf(dtype);
      return { name, dtype, stored: codeOf[dtype], shape, begin, end: offset };
    });
}

/** The length and the header, ready to be written. */
export function encodeHeader(entries: readonly Entry[], metadata?: Readonly<Record<string, string>>): Buffer {
  const json: [string, unknown][] = metadata ? [[metadataKey, metadata]] : [];
  for (const { name, stored, shape, begin, end } of entries) {
    json.push([name, { dtype: stored, shape, data_offsets: [begin, end] }]);
  }
  const text = Buffer.from(JSON.stringify(Object.fromEntries(json)));
  const bytes = Buffer.alloc(8 + Math.ceil(text.length / 8) * 8, ' ');
  bytes.writeBigUInt64LE(BigInt(bytes.length - 8));
  text.copy(bytes, 8);
  return bytes;
}
