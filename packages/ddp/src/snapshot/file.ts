// Writes and reads a snapshot file piece by piece, so that no rank needs memory for a whole one.
import { createHash } from 'node:crypto';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { badSnapshot } from '../errors.ts';
import { checkHeader } from './check-header.ts';
import { aligned, hashBytes, headBytes, headerLength } from './format.ts';
import { removeLeftovers, replaceable, temporaryFor } from './replaceable.ts';

const chunk = 4 << 20;

/**
 * Writes the pieces and their checksum to a file next to the target, flushes it to the disk, and renames it.
 */
export async function writeSnapshot(target: string, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await replaceable(target);
  const temporary = temporaryFor(file);
  const hash = createHash('sha256');
  try {
    const handle = await open(temporary, 'wx');
    try {
      for await (const piece of pieces) {
        hash.update(piece);
        await handle.writeFile(piece);
      }
      await handle.writeFile(hash.digest());
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
    await removeLeftovers(file).catch(() => {});
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await flushFolder(dirname(file)); // the new name
}

/** Flushes the names in a folder to the disk. Does nothing on Windows, which refuses to flush a folder (EPERM). */
export async function flushFolder(path: string, platform: NodeJS.Platform = process.platform): Promise<void> {
  if (platform === 'win32') return;
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** A complete, undamaged snapshot file. */
export class SnapshotFile {
  readonly header: string;
  readonly #handle: FileHandle;
  /** Offset of the arrays' memory in the file. */
  readonly #start: number;

  private constructor(handle: FileHandle, header: string, start: number) {
    this.#handle = handle;
    this.header = header;
    this.#start = start;
  }

  /**
   * Opens a snapshot; resolves with null if there is no such file. Reads all of it once for the checksum.
   * Rejects with ERR_DDP_SNAPSHOT if the checksum or the header is wrong.
   */
  static async open(file: string): Promise<SnapshotFile | null> {
    const handle = await open(file, 'r').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    if (handle === null) return null;
    try {
      const { size } = await handle.stat();
      const head = await readAt(handle, 0, Math.min(size, headBytes));
      const length = headerLength(Buffer.from(head.buffer), size, file);
      const content = size - hashBytes;
      const hash = createHash('sha256');
      for (let at = 0; at < content; at += chunk)
        hash.update(await readAt(handle, at, Math.min(chunk, content - at)));
      if (!hash.digest().equals(await readAt(handle, content, hashBytes))) {
        throw badSnapshot(file, 'its checksum does not match its content');
      }
      const header = Buffer.from((await readAt(handle, headBytes, length)).buffer).toString();
      const start = aligned(headBytes + length);
      checkHeader(header, content - start, file);
      return new SnapshotFile(handle, header, start);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Reads from the arrays' memory. */
  read(offset: number, bytes: number): Promise<Uint8Array<ArrayBuffer>> {
    return readAt(this.#handle, this.#start + offset, bytes);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

async function readAt(handle: FileHandle, position: number, bytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const buffer = new Uint8Array(bytes);
  for (let done = 0; done < bytes; ) {
    const { bytesRead } = await handle.read(buffer, done, bytes - done, position + done);
    if (bytesRead === 0) throw new Error(`the file ends ${bytes - done} bytes early`);
    done += bytesRead;
  }
  return buffer;
}
