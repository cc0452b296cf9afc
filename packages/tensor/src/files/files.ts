// Writes that replace a file as a whole or not at all.
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { HostArray } from '../core/dtype.ts';
import { removeLeftovers, replaceable, temporaryFor } from './replaceable.ts';

/** Maximum bytes of one call of write: the system accepts less than 2 GiB. */
const maxWriteBytes = 2 ** 30;

/** Returns the memory of an array as bytes, not a copy. */
export const bytesIn = (host: HostArray): Uint8Array =>
  new Uint8Array(host.buffer, host.byteOffset, host.byteLength);

async function writeFully(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const length = Math.min(bytes.length - done, maxWriteBytes);
    done += (await file.write(bytes, done, length)).bytesWritten;
  }
}

/**
 * Makes a folder and its parents, as mkdir() with `recursive` does. mkdir() never returns for a path below /proc, where
 * an existing folder accepts no subfolders.
 */
export async function makeFolder(path: string): Promise<void> {
  if (await isFolder(path)) return;
  if (dirname(path) !== path) await makeFolder(dirname(path));
  try {
    await mkdir(path);
  } catch (error) {
    if (!(await isFolder(path))) throw error; // unless another process has made it meanwhile
  }
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

/**
 * Writes `pieces` to a temporary file beside `target`, which is synchronised to disk and then renamed, so that the
 * path holds the old file or the complete new one.
 */
export async function replaceFile(target: string, pieces: Iterable<Uint8Array>): Promise<void> {
  const path = await replaceable(target);
  const temporary = temporaryFor(path);
  try {
    const file = await open(temporary, 'wx');
    try {
      for (const piece of pieces) await writeFully(file, piece);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
    await removeLeftovers(path).catch(() => {});
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
