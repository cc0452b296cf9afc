// The file that gets a copy of a stream of a rank. If it cannot be opened or written, such as on a full disk, prints a
// warning once and drops the file; the rank continues.

import { closeSync, openSync, writeSync } from 'node:fs';

export class LogFile {
  readonly #path: string;
  readonly #warn: (text: string) => void;
  /** Null once the file is closed or dropped. */
  #fd: number | null = null;

  constructor(path: string, warn: (text: string) => void) {
    this.#path = path;
    this.#warn = warn;
    this.#try(() => {
      this.#fd = openSync(path, 'a');
    });
  }

  /** Writes the bytes. Returns when the operating system has accepted all of them. */
  write(bytes: Uint8Array): void {
    this.#try(() => {
      for (let at = 0; this.#fd !== null && at < bytes.length; ) at += writeSync(this.#fd, bytes, at);
    });
  }

  close(): void {
    this.#try(() => {
      const fd = this.#fd;
      this.#fd = null;
      if (fd !== null) closeSync(fd);
    });
  }

  #try(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#warn(`${this.#path}: ${(error as Error).message}; no more is written there.`);
      this.close();
    }
  }
}
