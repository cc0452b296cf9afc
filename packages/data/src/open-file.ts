// A file that is read where it is asked for. Positional reads keep the memory at what was asked for, whatever the size of
// the file, and the system caches what is read often.
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { bytesOf } from './byte-order.ts';
import { closedFile, fileShrank, notAFile } from './errors.ts';

export class OpenFile {
  readonly path: string;
  /** Bytes, when it was opened. */
  readonly size: number;
  #descriptor: number | null;

  /** Throws ERR_DATA_FILE for what is no regular file; errors of the file system pass. */
  constructor(path: string) {
    this.path = path;
    // Opening a pipe would else wait for somebody who writes.
    this.#descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
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
      const got = readSync(this.#descriptor, bytes, done, length, position + done);
      if (got === 0) throw fileShrank(this.path, bytes.length, done);
      done += got;
    }
  }

  /** Idempotent. */
  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }
}
