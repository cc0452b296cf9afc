// A file that is read on request. Reads at a position need memory only for the requested bytes, whatever the file's
// size, and the system caches pages that are read often.
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { checkPath } from '../check.ts';
import { closedFile, fileShrank, fileSystem, notAFile } from '../errors.ts';

/** Without O_NONBLOCK, opening a pipe would wait for a writer. Windows has no such pipes and no O_NONBLOCK. */
const readFlags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Returns the bytes of `view`, without a copy. */
export function bytesOf(view: NodeJS.ArrayBufferView): Buffer {
  return view instanceof Buffer ? view : Buffer.from(view.buffer, view.byteOffset, view.byteLength);
}

export class OpenFile {
  readonly path: string;
  /** Size in bytes when the file was opened. */
  readonly size: number;
  #descriptor: number | null;

  /** Opens a file. Throws ERR_DATA_FILE if it is not a regular file or cannot be opened. */
  constructor(path: string) {
    checkPath('open: path', path);
    this.path = path;
    try {
      this.#descriptor = openSync(path, readFlags);
    } catch (cause) {
      throw fileSystem('open', path, cause);
    }
    const stat = fstatSync(this.#descriptor);
    this.size = stat.size;
    if (stat.isFile()) return;
    this.close();
    throw notAFile(path);
  }

  /** Fills `target` from byte `position` on. Blocks. Throws ERR_DATA_FILE if the file is closed or ends before. */
  read(target: NodeJS.ArrayBufferView, position: number): void {
    if (this.#descriptor === null) throw closedFile(this.path);
    const bytes = bytesOf(target);
    let done = 0;
    while (done < bytes.length) {
      // One read returns at most 2 GiB.
      const length = Math.min(bytes.length - done, 2 ** 30);
      const got = this.#readAt(this.#descriptor, bytes, done, length, position + done);
      if (got === 0) throw fileShrank(this.path, bytes.length, done);
      done += got;
    }
  }

  #readAt(descriptor: number, bytes: Buffer, offset: number, length: number, position: number): number {
    try {
      return readSync(descriptor, bytes, offset, length, position);
    } catch (cause) {
      throw fileSystem('read', this.path, cause);
    }
  }

  /** Closes the file. Idempotent. */
  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }
}

/**
 * Opens a file for asynchronous reads. Rejects with ERR_DATA_FILE if it is not a regular file or cannot be opened. The
 * caller closes it.
 */
export async function openRegular(path: string): Promise<FileHandle> {
  checkPath('open: path', path);
  const file = await open(path, readFlags).catch((cause: unknown) => {
    throw fileSystem('open', path, cause);
  });
  const isFile = await file.stat().then(
    (stat) => stat.isFile(),
    () => false,
  );
  if (isFile) return file;
  await file.close();
  throw notAFile(path);
}
