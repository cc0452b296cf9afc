// Reuses memory for messages of the same length: allocating many megabytes costs as much as copying them.

export class Pool {
  readonly #free: Uint8Array[] = [];
  readonly #most: number;

  /** `most` is the maximum number of buffers to keep. */
  constructor(most: number) {
    this.#most = most;
  }

  readonly take = (bytes: number): Uint8Array => {
    const at = this.#free.findIndex(({ length }) => length === bytes);
    return at < 0 ? new Uint8Array(bytes) : this.#free.splice(at, 1)[0]!;
  };

  /** Returns memory to the pool. The caller must not use it any more. */
  give(memory: Uint8Array): void {
    if (memory.length > 0 && this.#free.length < this.#most) this.#free.push(memory);
  }
}
