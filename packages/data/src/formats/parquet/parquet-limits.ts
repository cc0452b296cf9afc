// Limits what a Parquet file can make a reader allocate. The sizes in the footer (row groups) and in the page headers
// (decoded pages) are untrusted, so they are checked before anything is decoded. The lengths of the runs within a page
// are not checked.
import type { ColumnMetaData, Compressors, FileMetaData, RowGroup } from 'hyparquet';
import { badFile, DataError } from '../../errors.ts';
import type { OpenFile } from '../open-file.ts';
import { type ThriftFields, ThriftReader } from './parquet-thrift.ts';

/** Maximum ratio of decompressed to compressed size, for codecs that have such a bound. */
const mostRatio: Readonly<Record<string, number>> = { SNAPPY: 22, GZIP: 1032, LZ4: 256, LZ4_RAW: 256 };
/** Minimum memory of a decoded value in bytes. */
const valueBytes = 8;
/** Bytes of the magic, and of the footer's length before it. */
const wordBytes = 4;
/** Maximum size of the footer; tables with ten thousand columns stay below it. */
const mostFooterBytes = 2 ** 27;
/** Bytes that are read at first for a page header; more are read if it is longer. */
const headerBytes = 2 ** 14;
const mostHeaderBytes = 2 ** 24;

export interface ParquetLimits {
  readonly path: string;
  readonly fileBytes: number;
  /** See ParquetOptions. */
  readonly maxGroupBytes: number;
  /** Paths of the schema's columns that hold values, including nested ones, in the form that pathOf() returns. */
  readonly leaves: ReadonlySet<string>;
}

/** Returns a column's path: its names from the top level down, joined by dots. */
export const pathOf = (names: readonly string[]): string => names.join('.');

/** Throws ERR_DATA_FILE if there is no footer, or if it is damaged or has a list that claims more than it can hold. */
export function checkFooter(file: OpenFile): void {
  const { path, size } = file;
  const tail = Buffer.alloc(2 * wordBytes);
  if (size < tail.length) throw noFooter(path, `a file of ${size} bytes`);
  file.read(tail, size - tail.length);
  if (tail.toString('latin1', wordBytes) !== 'PAR1') throw noFooter(path, 'another end than PAR1');
  const bytes = tail.readUInt32LE(0);
  const most = Math.min(size - tail.length, mostFooterBytes);
  if (bytes > most) throw noFooter(path, `one of ${bytes} bytes where ${most} are possible`);
  const footer = Buffer.alloc(bytes);
  file.read(footer, size - tail.length - bytes);
  try {
    new ThriftReader(footer).struct();
  } catch (cause) {
    throw noFooter(path, (cause as Error).message, cause);
  }
}

/** Returns the byte range of a column's pages in one row group. */
export function rangeOf(column: ColumnMetaData): { readonly start: bigint; readonly end: bigint } {
  const start = column.dictionary_page_offset || column.data_page_offset;
  return { start, end: start + column.total_compressed_size };
}

/**
 * Throws ERR_DATA_FILE if, in these columns, row groups lie outside of the file, overlap or are too large, or if a row
 * group has columns that the schema does not have.
 */
export function checkGroups(
  { row_groups: groups }: FileMetaData,
  columns: ReadonlySet<string>,
  { path, fileBytes, maxGroupBytes, leaves }: ParquetLimits,
): void {
  const ranges: { readonly start: bigint; readonly end: bigint; readonly where: string }[] = [];
  for (const [group, { num_rows: rows, columns: chunks }] of groups.entries()) {
    const where = `${path}, row group ${group}`;
    const isCount = typeof rows === 'bigint' && rows >= 0n && rows <= BigInt(Number.MAX_SAFE_INTEGER);
    if (!isCount) throw damaged(where, 'a number of rows', `${rows}`);
    let bytes = rows * BigInt(valueBytes);
    let ofColumns = 0n;
    checkNames(chunks, leaves, where);
    for (const { meta_data: chunk } of chunks) {
      if (chunk === undefined || !columns.has(chunk.path_in_schema[0]!)) continue;
      checkChunk(chunk, rows, where, fileBytes);
      ranges.push({ ...rangeOf(chunk), where: `${where}, column "${chunk.path_in_schema.join('.')}"` });
      const decoded = chunk.num_values * BigInt(valueBytes);
      ofColumns += chunk.total_uncompressed_size > decoded ? chunk.total_uncompressed_size : decoded;
    }
    if (ofColumns > bytes) bytes = ofColumns;
    if (bytes > BigInt(maxGroupBytes)) throw tooLarge(where, maxGroupBytes, bytes);
  }
  checkApart(ranges);
}

/**
 * Checks that each column is in the schema and appears once. Hyparquet would decode other columns, and their
 * errors would be unhandled.
 */
function checkNames(chunks: RowGroup['columns'], leaves: ReadonlySet<string>, where: string): void {
  const known = new Set<string>();
  for (const { meta_data: chunk } of chunks) {
    if (chunk === undefined) throw damaged(where, 'columns with their sizes', 'one without');
    const name = pathOf(chunk.path_in_schema);
    if (!leaves.has(name)) throw damaged(where, 'columns of the schema', `"${name}"`);
    if (known.has(name)) throw damaged(where, 'every column once', `"${name}" twice`);
    known.add(name);
  }
}

function checkChunk(chunk: ColumnMetaData, rows: bigint, where: string, fileBytes: number): void {
  const { total_uncompressed_size: plain, num_values: values } = chunk;
  const dictionary = chunk.dictionary_page_offset ?? 0n;
  const numbers = [chunk.total_compressed_size, chunk.data_page_offset, dictionary, plain, values];
  if (!numbers.every((value) => typeof value === 'bigint' && value >= 0n))
    throw damaged(where, 'sizes and places of at least 0', numbers.join(', '));
  const { start, end } = rangeOf(chunk);
  if (start < 0n || end > BigInt(fileBytes))
    throw damaged(where, `a column within ${fileBytes} bytes`, `one from ${start} to ${end}`);
  // Every column has a value or a null mark for each row.
  if (values < rows) throw damaged(where, `${rows} values, one for each row, in each column`, `${values}`);
}

/** Checks that columns do not overlap. Otherwise a small file could decode to any number of rows. */
function checkApart(
  ranges: { readonly start: bigint; readonly end: bigint; readonly where: string }[],
): void {
  ranges.sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0));
  let covered = 0n;
  for (const { start, end, where } of ranges) {
    if (start === end) continue;
    if (start < covered) throw damaged(where, `a column behind the one before, at ${covered}`, `${start}`);
    covered = end;
  }
}

/**
 * Checks the page headers of a column in one row group. Throws ERR_DATA_FILE if one is damaged or if the pages claim
 * more values than the footer gives the column, because hyparquet allocates memory for the claimed number.
 */
export function checkPages(file: OpenFile, column: ColumnMetaData, where: string): void {
  const { start, end: endOfPages } = rangeOf(column);
  const end = Number(endOfPages);
  const most = Number(column.num_values);
  let total = 0;
  for (let at = Number(start); at < end - 1; ) {
    let page: PageHeader;
    try {
      page = pageAt(file, at, end);
    } catch (cause) {
      if (DataError.isInstance(cause)) throw cause; // the file is closed, or has become shorter
      if (total === most) return; // some writers leave bytes behind the last page
      throw damaged(where, `a page header at byte ${at}`, (cause as Error).message, cause);
    }
    if (page.isData) total += page.values;
    const mostHere = page.isData ? most - (total - page.values) : page.plainBytes;
    if (!(page.values >= 0 && page.values <= mostHere && page.nulls >= 0 && page.nulls <= page.values))
      throw damaged(where, `a page of at most ${mostHere} values`, `one that claims ${page.values}`);
    at = page.end;
    if (!(page.packedBytes >= 0 && at <= end))
      throw damaged(where, `a page that ends at byte ${end} at most`, `one of ${page.packedBytes} bytes`);
  }
}

interface PageHeader {
  /** True for a data page, false for a dictionary. */
  readonly isData: boolean;
  readonly values: number;
  readonly nulls: number;
  /** Size in the file, without the header. */
  readonly packedBytes: number;
  /** Uncompressed size. */
  readonly plainBytes: number;
  /** Offset of the page's end in the file. */
  readonly end: number;
}

/** Parses the page header at offset `at`. Reads more bytes if the first ones do not hold all of it. */
function pageAt(file: OpenFile, at: number, end: number): PageHeader {
  for (let length = headerBytes; ; length = mostHeaderBytes) {
    const bytes = Buffer.alloc(Math.min(length, end - at));
    file.read(bytes, at);
    const reader = new ThriftReader(bytes);
    try {
      return pageOf(reader.struct(), at, reader);
    } catch (error) {
      if (bytes.length < length || length === mostHeaderBytes) throw error;
    }
  }
}

/**
 * For each page type (0 data, 2 dictionary, 3 data of version 2): the number of the field that holds its own header,
 * and how many leading fields that header must have.
 */
const headers: Readonly<Record<number, readonly [field: number, needed: number]>> = {
  0: [5, 4],
  2: [7, 2],
  3: [8, 6],
};

function pageOf(fields: ThriftFields, at: number, reader: ThriftReader): PageHeader {
  const [field, needed] = headers[integer(fields, 1)] ?? [];
  const header = field === undefined ? undefined : fields.get(field);
  if (needed === undefined || typeof header !== 'object')
    throw new Error('no header of data or a dictionary');
  const [values = 0, second = 0, rows = 0, , ...levelBytes] = Array.from({ length: needed }, (_, i) =>
    integer(header, i + 1),
  );
  const packedBytes = integer(fields, 3);
  const levels = levelBytes.reduce((sum, bytes) => sum + bytes, 0);
  if (levels > packedBytes) throw new Error(`levels of ${levels} bytes in a page of ${packedBytes}`);
  const isVersion2 = field === 8;
  if (isVersion2 && rows > values) throw new Error(`${rows} rows of ${values} values`);
  return {
    isData: field !== 7,
    values,
    nulls: isVersion2 ? second : 0,
    ...{ packedBytes, plainBytes: integer(fields, 2), end: at + reader.at + packedBytes },
  };
}

/** Returns an integer field. Throws if it is missing or negative. */
function integer(fields: ThriftFields, id: number): number {
  const value = fields.get(id);
  if (typeof value === 'number' && value >= 0) return value;
  throw new Error(`no integer of at least 0 in field ${id}`);
}

/**
 * Returns decompressors that refuse a page if it claims to be larger than its compressed bytes can become, or than a
 * row group may be.
 */
export function boundedCompressors(given: Compressors, { path, maxGroupBytes }: ParquetLimits): Compressors {
  const entries = Object.entries(given).map(([codec, decompress]) => {
    const ratio = mostRatio[codec] ?? Infinity;
    const bounded: typeof decompress = (input, outputLength) => {
      // The extra bytes allow for headers of tiny pages.
      const most = Math.min(maxGroupBytes, ratio * (input.length + 64));
      if (!(outputLength >= 0 && outputLength <= most))
        throw damaged(path, `a page of at most ${most} bytes`, `one that claims ${outputLength}`);
      return decompress(input, outputLength);
    };
    return [codec, bounded];
  });
  return Object.fromEntries(entries) as Compressors;
}

function noFooter(path: string, got: string, cause?: unknown) {
  const what = ['the footer cannot be read', 'Parquet', got] as const;
  return badFile('ParquetFile', path, what, 'Is the file Parquet, and whole? Get it again.', cause);
}

function damaged(where: string, expected: string, got: string, cause?: unknown) {
  return badFile('ParquetFile', where, ['the file is damaged', expected, got], 'Get the file again.', cause);
}

function tooLarge(where: string, maxGroupBytes: number, got: bigint) {
  const expected = `at most ${maxGroupBytes} bytes (maxGroupBytes)`;
  const next = 'Read fewer columns, or raise maxGroupBytes if you trust the file.';
  return badFile('ParquetFile', where, ['a row group is too large', expected, `${got} decoded`], next);
}
