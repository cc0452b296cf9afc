// A file to append to. Data is buffered and written in one piece, at the latest when 64 KiB are buffered.

import { closeSync, writeSync } from 'node:fs';

const gatheredBytes = 1 << 16;

export class AppendFile {
  readonly #fd: number;
  #parts: Uint8Array[] = [];
  #bytes = 0;

  /** Takes ownership of the descriptor. */
  constructor(fd: number) {
    this.#fd = fd;
  }

  add(part: Uint8Array): void {
    this.#parts.push(part);
    this.#bytes += part.length;
    if (this.#bytes >= gatheredBytes) this.flush();
  }

  flush(): void {
    if (this.#bytes === 0) return;
    const all = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#bytes = 0;
    for (let at = 0; at < all.length; ) at += writeSync(this.#fd, all, at);
  }

  close(): void {
    try {
      this.flush();
    } finally {
      closeSync(this.#fd);
    }
  }
}
