// Reads and writes IDX files, gzipped or not. The header limits the inflated size, and `maxBytes` limits the size in
// the header. Memory grows with the bytes in the file, not with those that a header claims; a gzipped file needs about
// twice its inflated size.

import { type FileHandle, writeFile } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { createGunzip, gzipSync } from 'node:zlib';
import { checkInteger, checkPath } from '../../check.ts';
import { DataError, fileShrank, fileSystem, idxGzip, idxTrailing, idxTruncated } from '../../errors.ts';
import { checkedOptions, optionNames } from '../../options.ts';
import type { NdArray } from '../../typed-array.ts';
import { openRegular } from '../open-file.ts';
import {
  decodeElements,
  decodeIdx,
  describe,
  encodeIdx,
  type IdxArray,
  type IdxHeader,
  longestHeader,
  parseHeader,
} from './idx-format.ts';

export type { IdxArray } from './idx-format.ts';

/** Options of readIdx(). */
export interface ReadIdxOptions {
  /** Maximum inflated size of header and elements in bytes. Default 4 GiB. */
  readonly maxBytes?: number;
}

const names = optionNames<ReadIdxOptions>({ maxBytes: true });

/**
 * Reads a whole IDX file; gzip is detected by the file's first bytes. Rejects with ERR_DATA_IDX for damaged files and
 * for files larger than `maxBytes` (inflated), and with ERR_DATA_FILE if `path` is not a regular file or cannot be
 * opened.
 */
export async function readIdx(path: string, options?: ReadIdxOptions): Promise<NdArray<IdxArray>> {
  checkPath('readIdx: path', path);
  const { maxBytes = 2 ** 32 } = checkedOptions('readIdx', options, names);
  checkInteger('readIdx: maxBytes', maxBytes, 1);
  const file = await openRegular(path);
  try {
    const { size } = await file.stat();
    const start = await readExactly(file, Buffer.alloc(Math.min(longestHeader, size)), 0, path);
    const isGzip = start[0] === 0x1f && start[1] === 0x8b;
    if (isGzip) return decodeIdx(await inflate(file, path, maxBytes), path, maxBytes);
    const header = parseHeader(start, path, maxBytes);
    const { bytes, totalBytes } = header;
    if (size < totalBytes) throw idxTruncated(path, describe(header), totalBytes, size);
    if (size > totalBytes) throw idxTrailing(path, describe(header), totalBytes, `${size}`);
    const elements = await readExactly(file, Buffer.from(new ArrayBuffer(totalBytes - bytes)), bytes, path);
    return decodeElements(header, elements);
  } finally {
    await file.close();
  }
}

/**
 * Writes an array, gzipped if `path` ends with .gz. Rejects with ERR_DATA_IDX if IDX cannot represent the array, and
 * with ERR_DATA_FILE if the file cannot be written.
 */
export async function writeIdx(path: string, array: NdArray<IdxArray>): Promise<void> {
  checkPath('writeIdx: path', path);
  const file = encodeIdx(array, path);
  try {
    await writeFile(path, path.endsWith('.gz') ? gzipSync(file) : file);
  } catch (cause) {
    throw fileSystem('writeIdx', path, cause);
  }
}

/** Fills `target` from file offset `position` on, and returns it. */
async function readExactly(
  file: FileHandle,
  target: Buffer,
  position: number,
  path: string,
): Promise<Buffer> {
  for (let done = 0; done < target.length; ) {
    const length = Math.min(target.length - done, 2 ** 30); // one read gives at most 2 GiB
    const { bytesRead } = await file.read(target, done, length, position + done);
    if (bytesRead === 0) throw fileShrank(path, target.length, done);
    done += bytesRead;
  }
  return target;
}

async function inflate(file: FileHandle, path: string, maxBytes: number): Promise<Buffer> {
  const gunzip = createGunzip({ chunkSize: 256 * 1024 });
  // Errors of the file also end `gunzip`, and the loop below reports them.
  pipeline(file.createReadStream({ autoClose: false, start: 0 }), gunzip, () => {});
  const chunks: Buffer[] = [];
  let length = 0;
  let header: IdxHeader | undefined;
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (!header && length >= longestHeader) header = parseHeader(Buffer.concat(chunks), path, maxBytes);
      if (header && length > header.totalBytes) {
        throw idxTrailing(path, describe(header), header.totalBytes, 'more from gzip');
      }
    }
  } catch (error) {
    throw DataError.isInstance(error) ? error : idxGzip(path, length, error);
  }
  return Buffer.concat(chunks, length);
}
