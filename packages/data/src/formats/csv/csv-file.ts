// A CSV file as a data set with random access: an index of the offsets of its records, and csv-parse for the
// requested ones. Column types are given, never guessed, because a guess would depend on the rows that were
// looked at.

import { constants, isUtf8 } from 'node:buffer';
import { checkIndex, checkPath } from '../../check.ts';
import type { Dataset, Indices } from '../../datasets/dataset.ts';
import { badFile, longLine, notOpened, notUtf8, outOfRange } from '../../errors.ts';
import { checkedOptions, optionNames } from '../../options.ts';
import type { NdArray } from '../../typed-array.ts';
import { OpenFile } from '../open-file.ts';
import { importPeer } from '../optional-package.ts';
import { csvRecords, lineAt } from './csv-index.ts';

/** Maximum size of a record. No field can be longer than a JavaScript string. */
const mostRecordBytes = constants.MAX_STRING_LENGTH;

const arrays = { float32: Float32Array, float64: Float64Array, int32: Int32Array } as const;

/** Name and type of each column to read. */
export type CsvColumns = Readonly<Record<string, keyof typeof arrays | 'string'>>;

/** A sample: a number or a string per column. */
export type CsvSample<C extends CsvColumns> = { [K in keyof C]: C[K] extends 'string' ? string : number };

/** A batch: an array of shape [samples] per column; a list of strings for 'string' columns. */
export type CsvBatch<C extends CsvColumns> = {
  [K in keyof C]: C[K] extends keyof typeof arrays ? NdArray<InstanceType<(typeof arrays)[C[K]]>> : string[];
};

/** Options of CsvFile.open(). */
export interface CsvOptions<C extends CsvColumns> {
  /** Columns to read, by name, with the type of each. */
  readonly columns: C;
  /** Names of all columns of the file, if its first record does not contain them. The first record is then sample 0. */
  readonly header?: readonly string[];
  /** Separator of the fields. Default ','. */
  readonly delimiter?: string;
}

const optionNamesOfCsv = optionNames<CsvOptions<CsvColumns>>({
  columns: true,
  header: true,
  delimiter: true,
});

type Parse = typeof import('csv-parse/sync').parse;

/**
 * A CSV file whose record i after the header is sample i. Needs 8 bytes of memory per record. Fields may be quoted and
 * contain line ends. `get` and `getBatch` read synchronously. They throw ERR_DATA_FILE, with the line, for a field that
 * does not have its column's type, and for a record that is not UTF-8 or has more or fewer fields than the header. Owns
 * an open file until close().
 */
export class CsvFile<C extends CsvColumns> implements Dataset<CsvSample<C>, CsvBatch<C>> {
  /** Number of rows, without the line of names. */
  readonly length: number;
  readonly #file: OpenFile;
  /** Offset of each record after the header, and the end of the last one. */
  readonly #offsets: Float64Array;
  readonly #columns: readonly Column[];
  readonly #width: number;
  readonly #delimiter: string;
  readonly #parse: Parse;

  /** Opens a file and reads it once. Rejects with ERR_DATA_PEER if the package csv-parse is not installed. */
  static async open<const C extends CsvColumns>(path: string, options: CsvOptions<C>): Promise<CsvFile<C>> {
    checkPath('CsvFile: path', path);
    checkCsvOptions(checkedOptions('CsvFile', options, optionNamesOfCsv));
    const { parse } = await importPeer('CsvFile', 'csv-parse', () => import('csv-parse/sync'));
    const file = new OpenFile(path);
    try {
      return new CsvFile(file, parse, options);
    } catch (error) {
      file.close();
      throw error;
    }
  }

  private constructor(file: OpenFile, parse: Parse, options: CsvOptions<C>) {
    if (typeof parse !== 'function') throw notOpened('CsvFile');
    const { columns, header, delimiter = ',' } = options;
    this.#file = file;
    this.#parse = parse;
    this.#delimiter = delimiter;
    this.#offsets = csvRecords(file);
    const hasHeader = header === undefined && this.#offsets.length > 1;
    const names = header ?? (hasHeader ? this.#parseRecords([0])[0]! : []);
    if (hasHeader) this.#offsets = this.#offsets.subarray(1);
    // Otherwise such a file, whose only record is the header, would be a data set without samples.
    if (hasHeader && names.some((name) => /\r(?!\n)/.test(name)))
      throw this.#bad(
        -1,
        ['lines end with \\r alone', 'lines that end with \\n or \\r\\n', '\\r in the header'],
        {
          next: 'Convert the line ends.',
        },
      );
    this.#width = names.length;
    this.#columns = Object.entries(columns).map(([name, type]) => {
      const position = names.indexOf(name);
      if (position < 0)
        throw this.#bad(-1, ['no such column', names.map(quoted).join(', ') || 'a header', quoted(name)], {
          next: 'Name columns of the file, set delimiter if it is no comma, or pass all names as header if the file has none.',
        });
      if (names.lastIndexOf(name) !== position)
        throw this.#bad(-1, ['a column is there twice', `one "${name}"`, 'two of the name']);
      return { name, type, position };
    });
    this.length = this.#offsets.length - 1;
  }

  get(index: number): CsvSample<C> {
    const [fields] = this.#rows([index]);
    const entries = this.#columns.map((column) => [column.name, this.#value(column, fields!, index)]);
    return Object.fromEntries(entries) as CsvSample<C>;
  }

  getBatch(indices: Indices): CsvBatch<C> {
    const rows = this.#rows(indices);
    const entries = this.#columns.map((column) => {
      const values = rows.map((fields, i) => this.#value(column, fields, indices[i]!));
      if (column.type === 'string') return [column.name, values];
      return [column.name, { data: arrays[column.type].from(values as number[]), shape: [indices.length] }];
    });
    return Object.fromEntries(entries) as CsvBatch<C>;
  }

  /** Closes the file. Idempotent. */
  close(): void {
    this.#file.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #rows(indices: Indices): string[][] {
    for (const index of indices) checkIndex('CsvFile', index, this.length);
    const rows = this.#parseRecords(indices);
    if (rows.length !== indices.length) {
      const counts = [`${indices.length} records`, `${rows.length}`] as const;
      throw this.#bad(indices[0]!, ['quotes are not those of CSV', ...counts]);
    }
    const odd = rows.findIndex(({ length }) => length !== this.#width);
    if (odd >= 0) {
      const counts = [`${this.#width} fields as in the header`, `${rows[odd]!.length}`] as const;
      throw this.#bad(indices[odd]!, ['another number of fields', ...counts]);
    }
    return rows;
  }

  /**
   * Parses all records in one call, because the overhead of a csv-parse call is ten times the cost of a
   * record.
   */
  #parseRecords(indices: Indices): string[][] {
    const records = Array.from(indices, (index) => {
      const bytes = this.#offsets[index + 1]! - this.#offsets[index]! + 1;
      if (bytes > mostRecordBytes) throw this.#tooLong(index);
      const record = Buffer.allocUnsafe(bytes);
      this.#file.read(record.subarray(0, -1), this.#offsets[index]!);
      // The file's last record may have no line end. The parser skips the empty lines that others get.
      record[record.length - 1] = 10;
      return record;
    });
    // Otherwise the parser would put U+FFFD in place of every byte that is not UTF-8.
    const foreign = records.findIndex((record) => !isUtf8(record));
    if (foreign >= 0) throw notUtf8('CsvFile', this.#where(indices[foreign]!));
    try {
      return this.#parse(Buffer.concat(records), {
        delimiter: this.#delimiter,
        record_delimiter: ['\r\n', '\n'],
        relax_column_count: true,
        skip_empty_lines: true,
      });
    } catch (cause) {
      const done = (cause as { readonly records?: number }).records ?? 0;
      throw this.#bad(indices[done]!, ['no CSV record', 'fields', (cause as Error).message], { cause });
    }
  }

  #value({ name, type, position }: Column, fields: readonly string[], index: number): number | string {
    const text = fields[position]!;
    if (type === 'string') return text;
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (type === 'int32' ? value === (value | 0) : !Number.isNaN(value)) return value;
    throw this.#bad(index, [`column "${name}"`, `a number (${type})`, JSON.stringify(text)], {
      next: 'Mend the file, or read the column as a string and convert it with mapDataset.',
    });
  }

  #tooLong(index: number) {
    return longLine(
      'CsvFile',
      this.#where(index),
      mostRecordBytes,
      'Is the file CSV, with all of its quotes?',
    );
  }

  #bad(
    index: number,
    what: readonly [string, string, string],
    { next = 'Mend the file.', cause }: { readonly next?: string; readonly cause?: unknown } = {},
  ) {
    return badFile('CsvFile', this.#where(index), what, next, cause);
  }

  /** Returns the file and line of a record, or of the header if `index` is negative. */
  #where(index: number): string {
    return `${this.#file.path}:${index < 0 ? 1 : lineAt(this.#file, this.#offsets[index]!)}`;
  }
}

/** Shows where a name begins and ends, because spaces belong to it. */
const quoted = (name: string): string => JSON.stringify(name);

function checkCsvOptions({ columns, header, delimiter }: CsvOptions<CsvColumns>): void {
  if (typeof columns !== 'object' || columns === null)
    throw outOfRange('CsvFile: columns', 'an object of types by name', columns);
  const types = [...Object.keys(arrays), 'string'];
  for (const [name, type] of Object.entries(columns)) {
    if (!types.includes(type)) throw outOfRange(`CsvFile: type of column "${name}"`, types.join(', '), type);
  }
  if (header !== undefined && !(Array.isArray(header) && header.every((name) => typeof name === 'string')))
    throw outOfRange('CsvFile: header', 'a list of names', header);
  if (delimiter !== undefined && (typeof delimiter !== 'string' || delimiter === ''))
    throw outOfRange('CsvFile: delimiter', 'a string that is not empty', delimiter);
}

interface Column {
  readonly name: string;
  readonly type: CsvColumns[string];
  /** Index among the fields of a record. */
  readonly position: number;
}
