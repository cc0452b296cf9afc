// Memory that is used again for messages of the same length: new memory of many megabytes costs as much as a copy.

export class Pool {
  readonly #free: Uint8Array[] = [];
  readonly #most: number;

  /** Keeps at most `most` pieces of memory. */
  constructor(most: number) {
    this.#most = most;
  }

  readonly take = (bytes: number): Uint8Array => {
    const at = this.#free.findIndex(({ length }) => length === bytes);
    return at < 0 ? new Uint8Array(bytes) : this.#free.splice(at, 1)[0]!;
  };

  /** Takes memory back that the caller does not use any more. */
  give(memory: Uint8Array): void {
    if (memory.length > 0 && this.#free.length < this.#most) this.#free.push(memory);
  }
}
