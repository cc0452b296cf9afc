// Incremental parsing. A parser is a generator that yields the number of bytes it needs next and is resumed
// with exactly these bytes. So it reads like blocking code, although bytes arrive in pieces of any size. A
// length that a peer claims causes no allocation: a queue holds only bytes that have arrived.

/**
 * A parser: yields a byte count and receives a view of that many bytes, which is valid until its next yield.
 */
export type Reading<T> = Generator<number, T, Buffer>;

export class ByteQueue {
  #chunks: Buffer[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }

  /** Puts bytes back at the front. */
  unshift(bytes: Buffer): void {
    this.#chunks.unshift(bytes);
    this.#length += bytes.length;
  }

  /** Removes and returns `count` bytes, which must be in the queue. The result may share memory with a chunk. */
  take(count: number): Buffer {
    this.#length -= count;
    const first = this.#chunks[0];
    if (first && first.length > count) {
      this.#chunks[0] = first.subarray(count);
      return first.subarray(0, count);
    }
    let chunks = 0;
    let bytes = 0;
    while (bytes < count) bytes += this.#chunks[chunks++]!.length;
    const taken = this.#chunks.splice(0, chunks);
    const last = taken.at(-1);
    if (last && bytes > count) {
      const rest = bytes - count;
      this.#chunks.unshift(last.subarray(last.length - rest));
      taken[taken.length - 1] = last.subarray(0, last.length - rest);
    }
    return taken.length === 1 ? taken[0]! : Buffer.concat(taken, count);
  }
}

/** Runs a parser over a queue. */
export class Parser<T> {
  readonly #reading: Reading<T>;
  #state: IteratorResult<number, T> | undefined;

  constructor(reading: Reading<T>) {
    this.#reading = reading;
  }

  /**
   * Runs the parser as far as the bytes in the queue allow. Returns its result once it has finished, else
   * undefined. Throws the parser's errors.
   */
  advance(queue: ByteQueue): { value: T } | undefined {
    this.#state ??= this.#reading.next();
    while (!this.#state.done && this.#state.value <= queue.length) {
      this.#state = this.#reading.next(queue.take(this.#state.value));
    }
    return this.#state.done ? { value: this.#state.value } : undefined;
  }
}
