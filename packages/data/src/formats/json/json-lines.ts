// Files with one JSON value per line, read as a stream or by index. Lines end only at \n; a \r before it is whitespace
// in JSON. node:readline is not used: it would also end a line at U+2028, which JSON allows within strings.
import { constants, isUtf8 } from 'node:buffer';
import { checkIndex, checkPath } from '../../check.ts';
import type { Dataset } from '../../datasets/dataset.ts';
import { badJson, longLine, notUtf8 } from '../../errors.ts';
import { chunksOf, OffsetList } from '../file-chunks.ts';
import { OpenFile } from '../open-file.ts';

const newline = 10;
/** Maximum size of a line; a line cannot be longer than a JavaScript string. */
const mostLineBytes = constants.MAX_STRING_LENGTH;

/**
 * Returns the values of a file. Each pass opens the file, reads it from the beginning, 256 KiB at a time, and closes it
 * at the end. Synchronous. Throws ERR_DATA_FILE, naming the line, for a line that is not valid JSON in UTF-8, such as
 * an empty one.
 */
export function jsonLines<T = unknown>(path: string): Iterable<T> {
  checkPath('jsonLines: path', path);
  return {
    *[Symbol.iterator]() {
      const file = new OpenFile(path);
      try {
        let number = 0;
        for (const line of linesOf(file)) yield parse<T>(line, path, ++number);
      } finally {
        file.close();
      }
    },
  };
}

/**
 * A file whose line i, counted from 0, is sample i. The constructor reads the file once and keeps 8 bytes per line.
 * Synchronous. Owns an open file until close().
 */
export class JsonLinesFile<T = unknown> implements Dataset<T> {
  /** Number of lines. */
  readonly length: number;
  readonly #file: OpenFile;
  /** Offset of each line, and the end of the last one. */
  readonly #offsets: Float64Array;

  constructor(path: string) {
    this.#file = new OpenFile(path);
    try {
      this.#offsets = offsetsOf(this.#file);
    } catch (error) {
      this.close();
      throw error;
    }
    this.length = this.#offsets.length - 1;
  }

  /** Returns a sample. Throws ERR_DATA_FILE, naming the line, if it is not valid JSON in UTF-8. */
  get(index: number): T {
    checkIndex('JsonLinesFile', index, this.length);
    const bytes = this.#offsets[index + 1]! - this.#offsets[index]!;
    if (bytes > mostLineBytes) throw tooLong(this.#file.path, index + 1);
    const line = lineAt(this.#file, this.#offsets[index]!, this.#offsets[index + 1]!);
    return parse<T>(line, this.#file.path, index + 1);
  }

  /** Closes the file. Idempotent. */
  close(): void {
    this.#file.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

const tooLong = (path: string, line: number) =>
  longLine('JSON lines', `${path}:${line}`, mostLineBytes, 'Is the file JSON with one value per line?');

function parse<T>(line: Buffer, path: string, number: number): T {
  if (!isUtf8(line)) throw notUtf8('JSON lines', `${path}:${number}`);
  try {
    const text = line.toString('utf8');
    // Editors of Windows put a byte order mark before the first line.
    return JSON.parse(number === 1 && text.startsWith('\ufeff') ? text.slice(1) : text) as T;
  } catch (cause) {
    throw badJson(path, number, cause);
  }
}

/**
 * Yields the lines, without their \n. A line that continues in another chunk is read again from the file when its end
 * is known, so that nothing is kept of a line that may be too long.
 */
function* linesOf(file: OpenFile): Generator<Buffer, void, undefined> {
  let begin = 0; // of the line
  let at = 0; // of the chunk
  let number = 1;
  for (const chunk of chunksOf(file)) {
    for (let to = chunk.indexOf(newline); to >= 0; to = chunk.indexOf(newline, to + 1)) {
      yield begin >= at ? chunk.subarray(begin - at, to) : lineAt(file, begin, at + to);
      begin = at + to + 1;
      number++;
    }
    at += chunk.length;
    if (at - begin > mostLineBytes) throw tooLong(file.path, number);
  }
  if (begin < file.size) yield lineAt(file, begin, file.size);
}

function lineAt(file: OpenFile, begin: number, end: number): Buffer {
  const line = Buffer.allocUnsafe(end - begin);
  file.read(line, begin);
  return line;
}

function offsetsOf(file: OpenFile): Float64Array {
  const offsets = new OffsetList();
  let last = 0;
  let at = 0;
  offsets.add(last);
  for (const chunk of chunksOf(file)) {
    for (let to = chunk.indexOf(newline); to >= 0; to = chunk.indexOf(newline, to + 1)) {
      last = at + to + 1;
      offsets.add(last);
    }
    at += chunk.length;
  }
  if (last !== file.size) offsets.add(file.size);
  return offsets.toArray();
}
