// A Parquet file as a data set. Whole row groups are decoded, and a few decoded groups are cached, so reading the file
// in order decodes each group once.

import { checkIndex, checkInteger, checkPath } from '../../check.ts';
import type { Dataset } from '../../datasets/dataset.ts';
import { badFile, DataError, noColumn, notOpened, outOfRange } from '../../errors.ts';
import { checkedOptions, optionNames } from '../../options.ts';
import { OpenFile } from '../open-file.ts';
import { importPeer } from '../optional-package.ts';
import { boundedCompressors, checkFooter, checkGroups, checkPages, pathOf } from './parquet-limits.ts';

/** Options of ParquetFile.open(). */
export interface ParquetOptions {
  /** Names of the top-level columns to read. Default: all. */
  readonly columns?: readonly string[];
  /** Maximum number of decoded row groups in the cache. Default 2. Groups that are being read need memory, too. */
  readonly cachedGroups?: number;
  /**
   * Maximum size of one row group in bytes, in the columns that are read. Counts their uncompressed bytes, at least 8
   * for each value. Default 4 GiB.
   */
  readonly maxGroupBytes?: number;
}

const names = optionNames<ParquetOptions>({ columns: true, cachedGroups: true, maxGroupBytes: true });

type Hyparquet = typeof import('hyparquet');
type ReadOptions = Parameters<Hyparquet['parquetReadObjects']>[0];
type Source = Pick<ReadOptions, 'file' | 'metadata' | 'compressors'>;

/**
 * A Parquet file whose row i is sample i, an object with one member per column, which belongs to the caller. 64-bit
 * integers are bigints, missing values are null. Reading a row decodes its whole group unless that is cached: read in
 * order, with a BlockRandomSampler over `groupLengths`, or with `rows`. Reads reject with ERR_DATA_FILE, naming row
 * group and column, if the file is damaged. Owns an open file until close().
 */
export class ParquetFile<T = Record<string, unknown>> implements Dataset<T> {
  /** Number of rows. */
  readonly length: number;
  /** Number of rows of each row group. */
  readonly groupLengths: readonly number[];
  /** Names of the columns that are read. */
  readonly columns: readonly string[];
  readonly #file: OpenFile;
  readonly #source: Source;
  readonly #read: Hyparquet['parquetReadObjects'];
  /** First row of each group, and the end of the last one. */
  readonly #starts: readonly number[];
  readonly #cachedGroups: number;
  /** Decoded groups by index, least recently used first. */
  readonly #cache = new Map<number, Promise<T[]>>();

  /**
   * Opens a file. Rejects with ERR_DATA_PEER if the package hyparquet is not installed. For compression other than
   * snappy, hyparquet-compressors must be installed, too.
   */
  static async open<T = Record<string, unknown>>(
    path: string,
    given?: ParquetOptions,
  ): Promise<ParquetFile<T>> {
    checkPath('ParquetFile: path', path);
    const options = checkedOptions('ParquetFile', given, names);
    const { maxGroupBytes = 2 ** 32 } = options;
    checkInteger('ParquetFile: cachedGroups', options.cachedGroups ?? 2, 1);
    checkInteger('ParquetFile: maxGroupBytes', maxGroupBytes, 1);
    if (options.columns !== undefined && !Array.isArray(options.columns))
      throw outOfRange('ParquetFile: columns', 'a list of names', options.columns);
    const hyparquet = await importPeer('ParquetFile', 'hyparquet', () => import('hyparquet'));
    const compressors = await import('hyparquet-compressors').then(
      (module) => module.compressors,
      () => ({ SNAPPY: snappy(hyparquet) }), // other codecs give an error when a group is read
    );
    const opened = new OpenFile(path);
    try {
      checkFooter(opened);
      const file = asAsyncBuffer(opened);
      const metadata = await hyparquet.parquetMetadataAsync(file).catch((cause: unknown) => {
        throw damaged(path, 'the footer cannot be read', cause);
      });
      const { columns, leaves } = columnsOf(hyparquet, metadata, path);
      const missing = options.columns?.find((name) => !columns.includes(name));
      if (missing !== undefined) throw noColumn('ParquetFile', columns, missing);
      const limits = { path, fileBytes: opened.size, maxGroupBytes, leaves };
      checkGroups(metadata, new Set(options.columns ?? columns), limits);
      const source = { file, metadata, compressors: boundedCompressors(compressors, limits) };
      return new ParquetFile<T>(opened, source, hyparquet.parquetReadObjects, columns, options);
    } catch (error) {
      opened.close();
      throw error;
    }
  }

  private constructor(
    file: OpenFile,
    source: Source,
    read: Hyparquet['parquetReadObjects'],
    names: readonly string[],
    options: ParquetOptions,
  ) {
    if (typeof read !== 'function') throw notOpened('ParquetFile');
    const { columns = names, cachedGroups = 2 } = options;
    this.#file = file;
    this.#source = source;
    this.#read = read;
    this.columns = columns;
    this.#cachedGroups = cachedGroups;
    this.groupLengths = source.metadata!.row_groups.map(({ num_rows }) => Number(num_rows));
    let length = 0;
    this.#starts = [0, ...this.groupLengths.map((rows) => (length += rows))];
    this.length = length;
  }

  async get(index: number): Promise<T> {
    checkIndex('ParquetFile', index, this.length);
    const group = this.#groupOf(index);
    const rows = await this.#rowsOf(group);
    return copyOf(rows[index - this.#starts[group]!]!);
  }

  /**
   * Returns a stream of the rows of these row groups, by index, in this order; by default all. Only the
   * requested groups are read: `rows(shard(file.groupLengths.keys(), { replicas, rank }))` is the part of one
   * rank and worker. Such parts may differ in length.
   */
  rows(groups: Iterable<number> = this.groupLengths.keys()): AsyncIterable<T> {
    const numbers = [...groups];
    for (const group of numbers) checkIndex('ParquetFile.rows', group, this.groupLengths.length);
    const rowsOf = (group: number) => this.#rowsOf(group);
    return {
      async *[Symbol.asyncIterator]() {
        for (const group of numbers) for (const row of await rowsOf(group)) yield copyOf(row);
      },
    };
  }

  /** Closes the file. Idempotent. */
  close(): void {
    this.#cache.clear();
    this.#file.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #groupOf(row: number): number {
    let low = 0;
    let high = this.groupLengths.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.#starts[middle]! <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #rowsOf(group: number): Promise<T[]> {
    const rows = this.#cache.get(group) ?? this.#decode(group);
    this.#cache.delete(group);
    this.#cache.set(group, rows);
    rows.catch(() => this.#cache.delete(group));
    for (const oldest of this.#cache.keys()) {
      if (this.#cache.size <= this.#cachedGroups) break;
      this.#cache.delete(oldest);
    }
    return rows;
  }

  /** Checks the page headers of a row group, in the columns that are read. */
  #checkPages(group: number): void {
    const columns = new Set(this.columns);
    for (const { meta_data: chunk } of this.#source.metadata!.row_groups[group]!.columns) {
      if (chunk === undefined || !columns.has(chunk.path_in_schema[0]!)) continue;
      const where = `${this.#file.path}, row group ${group}, column "${chunk.path_in_schema.join('.')}"`;
      checkPages(this.#file, chunk, where);
    }
  }

  async #decode(group: number): Promise<T[]> {
    const rowStart = this.#starts[group]!;
    const rowEnd = this.#starts[group + 1]!;
    const read = (columns: readonly string[]) =>
      this.#read({ ...this.#source, columns: [...columns], rowStart, rowEnd });
    try {
      this.#checkPages(group);
      const rows = await read(this.columns);
      if (rows.length !== rowEnd - rowStart) throw new Error(`${rows.length} of ${rowEnd - rowStart} rows`);
      return rows as T[];
    } catch (cause) {
      if (DataError.isInstance(cause) && cause.message.includes(this.#file.path)) throw cause;
      // Reads each column alone, to name the first damaged one.
      let column = '';
      for (const name of this.columns) {
        const failed = await read([name]).then(
          () => false,
          () => true,
        );
        if (failed && column === '') column = `, column "${name}"`;
      }
      const where = `${this.#file.path}, row group ${group}, rows ${rowStart} to ${rowEnd - 1}${column}`;
      throw damaged(where, 'a row group cannot be read', cause);
    }
  }
}

/** Returns a copy of a row, because a program may change what it gets, and later reads use the cached row again. */
function copyOf<T>(row: T): T {
  const copy = { ...row } as Record<string, unknown>;
  for (const [name, value] of Object.entries(copy)) {
    if (typeof value === 'object' && value !== null) copy[name] = structuredClone(value);
  }
  return copy as T;
}

type Tree = ReturnType<Hyparquet['parquetSchema']>;

/** Yields the paths of all columns that hold values, in the form of pathOf(). */
function* leavesOf({ children, path }: Tree): Generator<string> {
  if (children.length === 0) yield pathOf(path);
  for (const child of children) yield* leavesOf(child);
}

/** Returns the names of the top-level columns, and the paths of all columns that hold values (leaves). */
function columnsOf(
  hyparquet: Hyparquet,
  metadata: Source['metadata'] & object,
  path: string,
): { columns: string[]; leaves: ReadonlySet<string> } {
  let columns: string[];
  let leaves: ReadonlySet<string>;
  try {
    const schema = hyparquet.parquetSchema(metadata);
    columns = schema.children.map(({ element }) => element.name);
    leaves = new Set(leavesOf(schema));
  } catch (cause) {
    throw damaged(path, 'the schema cannot be read', cause);
  }
  const names = new Set<string>();
  const twice = columns.find((name) => names.size === names.add(name).size);
  if (twice === undefined) return { columns, leaves };
  const what = ['a column is there twice', 'every name once', JSON.stringify(twice)] as const;
  throw badFile('ParquetFile', path, what, 'Write the file again, with other names.');
}

/** Makes a decompressor from hyparquet's own snappy. */
const snappy =
  ({ snappyUncompress }: Hyparquet) =>
  (input: Uint8Array, outputLength: number): Uint8Array => {
    const output = new Uint8Array(outputLength);
    snappyUncompress(input, output);
    return output;
  };

function damaged(where: string, what: string, cause: unknown) {
  const got = cause instanceof Error ? cause.message : String(cause);
  const next = 'Get the file again; if its compression is not snappy, run npm install hyparquet-compressors.';
  return badFile('ParquetFile', where, [what, 'Parquet', got], next, cause);
}

/** Returns the file in the form that hyparquet reads. */
function asAsyncBuffer(file: OpenFile) {
  const sliceOf = async (start: number, end: number): Promise<ArrayBuffer> => {
    // Numbers from a damaged file must not determine an allocation.
    if (!(start >= 0 && start <= end && end <= file.size)) {
      throw new Error(`bytes ${start} to ${end} of a file of ${file.size}`);
    }
    const memory = new ArrayBuffer(end - start);
    file.read(new Uint8Array(memory), start);
    return memory;
  };
  return {
    byteLength: file.size,
    slice: (start: number, end = file.size): Promise<ArrayBuffer> => {
      const bytes = sliceOf(start, end);
      // Hyparquet may stop before it awaits all of these promises, and an unhandled rejection would end the
      // process.
      bytes.catch(() => {});
      return bytes;
    },
  };
}
