// A file that is read where it is asked for. Positional reads keep the memory at what was asked for, whatever the size of
// the file, and the system caches what is read often.
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { checkPath } from '../check.ts';
import { closedFile, fileShrank, fileSystem, notAFile } from '../errors.ts';
import { bytesOf } from './byte-order.ts';

/** Opening a pipe would else wait for somebody who writes. Windows has neither. */
const readFlags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

export class OpenFile {
  readonly path: string;
  /** Bytes, when it was opened. */
  readonly size: number;
  #descriptor: number | null;

  /** Throws ERR_DATA_FILE for what is no regular file, or cannot be opened. */
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

  /** Fills `target` from byte `position` on. Throws ERR_DATA_FILE where the file ends before. */
  read(target: NodeJS.ArrayBufferView, position: number): void {
    if (this.#descriptor === null) throw closedFile(this.path);
    const bytes = bytesOf(target);
    let done = 0;
    while (done < bytes.length) {
      // One read gives at most 2 GiB.
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

  /** Idempotent. */
  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }
}

/** For files that are read once, from their beginning. Throws as OpenFile does. */
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
