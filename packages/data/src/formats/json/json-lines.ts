// Files with one JSON value per line: streamed, or by number with an index of where the lines begin.
// Lines end at \n alone (a \r before it is JSON's white space): JSON allows U+2028 within strings, so node:readline, which
// ends a line there, would cut values in two.
import { constants } from 'node:buffer';
import { checkIndex, checkPath } from '../../check.ts';
import type { Dataset } from '../../datasets/dataset.ts';
import { badJson, longLine } from '../../errors.ts';
import { chunksOf, OffsetList } from '../file-chunks.ts';
import { OpenFile } from '../open-file.ts';

const newline = 10;
/** No string of JavaScript is longer. */
const mostLineBytes = constants.MAX_STRING_LENGTH;

/** Each pass reads the file from its beginning, 256 KiB at a time, and closes it at its end. Synchronous. */
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
 * Line i of the file is sample i. The constructor reads the file once; what stays in memory is 8 bytes a line.
 * Synchronous. Owns an open file, until close().
 */
export class JsonLinesFile<T = unknown> implements Dataset<T> {
  readonly length: number;
  readonly #file: OpenFile;
  /** Of each line, and of the end of the last. */
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

  /** Throws ERR_DATA_FILE, which names the line, where that is no JSON. */
  get(index: number): T {
    checkIndex('JsonLinesFile', index, this.length);
    const bytes = this.#offsets[index + 1]! - this.#offsets[index]!;
    if (bytes > mostLineBytes) throw tooLong(this.#file.path, index + 1);
    const line = lineAt(this.#file, this.#offsets[index]!, this.#offsets[index + 1]!);
    return parse<T>(line, this.#file.path, index + 1);
  }

  /** Idempotent. */
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
  try {
    return JSON.parse(line.toString('utf8')) as T;
  } catch (cause) {
    throw badJson(path, number, cause);
  }
}

/** Lines that go on in another chunk are read again once their end is known: none is held before its length is. */
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
