// What a Parquet file may make a reader allocate. Its footer says how large row groups are, its pages say how large they
// become, and both come from outside: they are checked before anything is decoded.
import type { Compressors, FileMetaData } from 'hyparquet';
import { badFile } from './errors.ts';

/** The most that each codec makes of one byte, where there is such a bound. */
const mostRatio: Readonly<Record<string, number>> = { SNAPPY: 22, GZIP: 1032, LZ4: 256, LZ4_RAW: 256 };
/** A decoded value takes at least that much. */
const valueBytes = 8;

export interface ParquetLimits {
  readonly path: string;
  readonly fileBytes: number;
  /** Of one row group, decoded. */
  readonly maxGroupBytes: number;
}

/** Throws ERR_DATA_FILE for row groups that lie outside of the file, or are larger than allowed in these columns. */
export function checkGroups(
  { row_groups: groups }: FileMetaData,
  columns: readonly string[],
  { path, fileBytes, maxGroupBytes }: ParquetLimits,
): void {
  for (const [group, { num_rows: rows, columns: chunks }] of groups.entries()) {
    const where = `${path}, row group ${group}`;
    const isCount = typeof rows === 'bigint' && rows >= 0n && rows <= BigInt(Number.MAX_SAFE_INTEGER);
    if (!isCount) throw damaged(where, 'a number of rows', `${rows}`);
    let bytes = 0n;
    for (const { meta_data: chunk } of chunks) {
      if (chunk === undefined || !columns.includes(chunk.path_in_schema[0]!)) continue;
      const { total_compressed_size: packed, total_uncompressed_size: plain, num_values: values } = chunk;
      const isInside = packed >= 0n && chunk.data_page_offset >= 0n && packed <= BigInt(fileBytes);
      if (!isInside) throw damaged(where, `a column within ${fileBytes} bytes`, `one of ${packed} bytes`);
      if (plain < 0n || values < 0n) throw damaged(where, 'sizes of at least 0', `${plain} and ${values}`);
      const decoded = values * BigInt(valueBytes);
      bytes += plain > decoded ? plain : decoded;
    }
    if (bytes === 0n) bytes = rows * BigInt(valueBytes);
    if (bytes > BigInt(maxGroupBytes)) throw tooLarge(where, maxGroupBytes, bytes);
  }
}

/** Decompressors that refuse pages which claim to become more than they can, or than a row group may take. */
export function boundedCompressors(given: Compressors, { path, maxGroupBytes }: ParquetLimits): Compressors {
  const entries = Object.entries(given).map(([codec, decompress]) => {
    const ratio = mostRatio[codec] ?? Infinity;
    const bounded: typeof decompress = (input, outputLength) => {
      // Some bytes more, for headers of tiny pages.
      const most = Math.min(maxGroupBytes, ratio * (input.length + 64));
      if (!(outputLength >= 0 && outputLength <= most))
        throw damaged(path, `a page of at most ${most} bytes`, `one that claims ${outputLength}`);
      return decompress(input, outputLength);
    };
    return [codec, bounded];
  });
  return Object.fromEntries(entries) as Compressors;
}

function damaged(where: string, expected: string, got: string) {
  return badFile('ParquetFile', where, ['the file is damaged', expected, got], 'Get the file again.');
}

function tooLarge(where: string, maxGroupBytes: number, got: bigint) {
  const expected = `at most ${maxGroupBytes} bytes (maxGroupBytes)`;
  const next = 'Read fewer columns, or raise maxGroupBytes if you trust the file.';
  return badFile('ParquetFile', where, ['a row group is too large', expected, `${got} decoded`], next);
}
