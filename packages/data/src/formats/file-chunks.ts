// Helpers for readers that read a whole file, for example to find where its records begin.
import type { OpenFile } from './open-file.ts';

const chunkBytes = 256 * 1024;

/** Yields the whole file in chunks of 256 KiB, each in new memory. */
export function* chunksOf(file: OpenFile): Generator<Buffer, void, undefined> {
  for (let at = 0; at < file.size; at += chunkBytes) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, file.size - at));
    file.read(chunk, at);
    yield chunk;
  }
}

/** A growing list of byte offsets, 8 bytes each. */
export class OffsetList {
  #offsets = new Float64Array(1024);
  #count = 0;

  add(offset: number): void {
    if (this.#count === this.#offsets.length) {
      const larger = new Float64Array(2 * this.#count);
      larger.set(this.#offsets);
      this.#offsets = larger;
    }
    this.#offsets[this.#count++] = offset;
  }

  toArray(): Float64Array {
    return this.#offsets.slice(0, this.#count);
  }
}
