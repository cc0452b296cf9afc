// Reads and writes IDX files, gzipped or not. What is inflated is bounded by the size in the header, and that one by
// `maxBytes`; memory follows the bytes that are there, never the header alone. So no small file can fill the memory.

import { readFile, writeFile } from 'node:fs/promises';
import { createGunzip, gzipSync } from 'node:zlib';
import { DataError, idxGzip, idxTrailing } from './errors.ts';
import {
  decodeIdx,
  describe,
  encodeIdx,
  type IdxArray,
  type IdxHeader,
  longestHeader,
  parseHeader,
} from './idx-format.ts';
import type { NdArray } from './typed-array.ts';

export type { IdxArray } from './idx-format.ts';

/**
 * Reads a whole IDX file; gzip is recognised by its first bytes. Throws ERR_DATA_IDX for damaged or larger files
 * (`maxBytes`, inflated, default 4 GiB); errors of the file system pass.
 */
export async function readIdx(
  path: string,
  { maxBytes = 2 ** 32 }: { readonly maxBytes?: number } = {},
): Promise<NdArray<IdxArray>> {
  const file = await readFile(path);
  const isGzip = file[0] === 0x1f && file[1] === 0x8b;
  return decodeIdx(isGzip ? await inflate(file, path, maxBytes) : file, path, maxBytes);
}

/** Writes `data` in `shape`; gzipped where `path` ends with .gz. Throws ERR_DATA_IDX for what IDX cannot hold. */
export async function writeIdx(path: string, array: NdArray<IdxArray>): Promise<void> {
  const file = encodeIdx(array, path);
  await writeFile(path, path.endsWith('.gz') ? gzipSync(file) : file);
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
