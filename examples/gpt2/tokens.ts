// A file of tokens as nanoGPT writes it: uint16, one behind the other, nothing else. Windows are read where they lie, so
// the file may be larger than the memory; the system keeps what is read often.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { type Generator, randint } from '@ringwise/tensor';

export class TokenFile {
  readonly count: number;
  readonly #file: number;
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
    this.#file = openSync(path, 'r');
    this.count = Math.floor(fstatSync(this.#file).size / 2);
  }

  /** `rows` windows of `time` tokens from random places, and the tokens that follow each of them. */
  batch(rows: number, time: number, generator: Generator): { x: Int32Array; y: Int32Array } {
    if (this.count <= time)
      throw new Error(`${this.#path}: expected more than ${time} tokens, got ${this.count}`);
    const starts = randint(0, this.count - time, [rows], { generator });
    const [x, y] = [new Int32Array(rows * time), new Int32Array(rows * time)];
    const window = new Uint16Array(time + 1);
    for (const [row, start] of (starts.dataSync() as BigInt64Array).entries()) {
      const bytes = readSync(this.#file, window, 0, window.byteLength, Number(start) * 2);
      if (bytes !== window.byteLength) throw new Error(`${this.#path}: became shorter while it was read`);
      x.set(window.subarray(0, time), row * time);
      y.set(window.subarray(1), row * time);
    }
    return { x, y };
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}
