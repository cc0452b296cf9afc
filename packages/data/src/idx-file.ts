// Reads and writes IDX files, gzipped or not. What is inflated is bounded by the size in the header, and that one by
// `maxBytes`; memory follows the bytes that are there, never the header alone. So no small file can fill the memory.

import { constants } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { createGunzip, gzipSync } from 'node:zlib';
import { checkInteger } from './check.ts';
import { DataError, idxGzip, idxTrailing, notAFile } from './errors.ts';
import {
  decodeIdx,
  describe,
  encodeIdx,
  type IdxArray,
  type IdxHeader,
  longestHeader,
  parseHeader,
} from './idx-format.ts';
import { checkedOptions, optionNames } from './options.ts';
import type { NdArray } from './typed-array.ts';

export type { IdxArray } from './idx-format.ts';

export interface ReadIdxOptions {
  /** The most that header and elements may take, inflated. Default 4 GiB. */
  readonly maxBytes?: number;
}

const names = optionNames<ReadIdxOptions>({ maxBytes: true });

/**
 * Reads a whole IDX file; gzip is recognised by its first bytes. Throws ERR_DATA_IDX for damaged or larger files
 * (`maxBytes`, inflated, default 4 GiB); errors of the file system pass.
 */
export async function readIdx(path: string, options?: ReadIdxOptions): Promise<NdArray<IdxArray>> {
  const { maxBytes = 2 ** 32 } = checkedOptions('readIdx', options, names);
  checkInteger('readIdx: maxBytes', maxBytes, 1);
  const file = await readWhole(path);
  const isGzip = file[0] === 0x1f && file[1] === 0x8b;
  return decodeIdx(isGzip ? await inflate(file, path, maxBytes) : file, path, maxBytes);
}

/** Writes `data` in `shape`; gzipped where `path` ends with .gz. Throws ERR_DATA_IDX for what IDX cannot hold. */
export async function writeIdx(path: string, array: NdArray<IdxArray>): Promise<void> {
  const file = encodeIdx(array, path);
  await writeFile(path, path.endsWith('.gz') ? gzipSync(file) : file);
}

/** Throws ERR_DATA_FILE for what is no regular file, such as a device without an end. */
async function readWhole(path: string): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!(await file.stat()).isFile()) throw notAFile(path);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

async function inflate(file: Buffer, path: string, maxBytes: number): Promise<Buffer> {
  const gunzip = createGunzip({ chunkSize: 256 * 1024 });
  gunzip.end(file);
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
