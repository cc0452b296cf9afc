// A file of tokens: consecutive little-endian unsigned integers without a header, as nanoGPT's prepare.py writes it.

import { swapTo } from '@ringwise/formats';
import { checkIndex, checkInteger } from '../../check.ts';
import type { Dataset, Indices } from '../../datasets/dataset.ts';
import { badFile, badTokenBytes, fewTokens, outOfRange } from '../../errors.ts';
import { checkedOptions, optionNames } from '../../options.ts';
import type { NdArray } from '../../typed-array.ts';
import { bytesOf, OpenFile } from '../open-file.ts';

/** Options of TokenFile. */
export interface TokenFileOptions {
  /** Number of tokens in a sample. */
  readonly block: number;
  /**
   * Number of tokens from the start of a sample to the start of the next. Default `block`: no token is predicted
   * twice in an epoch.
   */
  readonly stride?: number;
  /** Type of a token. Default 'uint16'. Tokens must be below 2^31, because batches are Int32Arrays. */
  readonly dtype?: 'uint16' | 'uint32';
}

const names = optionNames<TokenFileOptions>({ block: true, stride: true, dtype: true });

/** Tokens `x`, and for each of them the following token in `y`. */
export interface TokenWindows {
  /** Input tokens, shape [batch, block]. */
  readonly x: NdArray<Int32Array>;
  /** Target tokens, shape [batch, block]: the token that follows each token of `x`. */
  readonly y: NdArray<Int32Array>;
}

/**
 * A file as windows of `block` + 1 tokens, read on request: memory use does not depend on the size of the file. Sample
 * i begins at token i · `stride`; tokens at the end that fill no window are left out. Synchronous. Owns an open file
 * until close().
 */
export class TokenFile implements Dataset<TokenWindows, TokenWindows> {
  /** Number of windows. */
  readonly length: number;
  /** Number of tokens in the file. */
  readonly tokenCount: number;
  readonly #file: OpenFile;
  readonly #block: number;
  readonly #stride: number;
  /** One window of the file; a token from 2^31 on is negative here. */
  readonly #window: Uint16Array | Int32Array;
  readonly #bytes: Buffer;
  /** The parts of the window that become x and y. */
  readonly #parts: readonly [Uint16Array | Int32Array, Uint16Array | Int32Array];

  constructor(path: string, options: TokenFileOptions) {
    const { block, stride = block, dtype = 'uint16' } = checkedOptions('TokenFile', options, names);
    if (dtype !== 'uint16' && dtype !== 'uint32')
      throw outOfRange('TokenFile: dtype', "'uint16' or 'uint32'", dtype);
    checkInteger('TokenFile: block', block, 1, 2 ** 31 - 1);
    checkInteger('TokenFile: stride', stride, 1);
    const width = dtype === 'uint16' ? 2 : 4;
    this.#file = new OpenFile(path);
    const { size } = this.#file;
    this.tokenCount = size / width;
    if (size % width !== 0 || this.tokenCount <= block) {
      this.close();
      throw size % width === 0 ? fewTokens(path, block, this.tokenCount) : badTokenBytes(path, width, size);
    }
    // The file has at least one whole window here, so a large `block` cannot make this larger than the file.
    this.#window = dtype === 'uint16' ? new Uint16Array(block + 1) : new Int32Array(block + 1);
    this.#bytes = bytesOf(this.#window);
    this.#parts = [this.#window.subarray(0, block), this.#window.subarray(1)];
    this.length = Math.floor((this.tokenCount - block - 1) / stride) + 1;
    this.#block = block;
    this.#stride = stride;
  }

  /** Returns `x` and `y` of shape [block], in new memory. Throws ERR_DATA_FILE for a token from 2^31 on. */
  get(index: number): TokenWindows {
    const { x, y } = this.getBatch([index]);
    return { x: { data: x.data, shape: [this.#block] }, y: { data: y.data, shape: [this.#block] } };
  }

  /** Returns `x` and `y` of shape [indices.length, block], in new memory. Throws as get() does. */
  getBatch(indices: Indices): TokenWindows {
    const block = this.#block;
    const window = this.#window;
    const width = window.BYTES_PER_ELEMENT;
    const [head, tail] = this.#parts;
    const shape = [indices.length, block];
    const [x, y] = [new Int32Array(indices.length * block), new Int32Array(indices.length * block)];
    for (let row = 0; row < indices.length; row++) {
      const begin = indices[row]! * this.#stride;
      checkIndex('TokenFile', indices[row]!, this.length);
      this.#file.read(this.#bytes, begin * width);
      swapTo(this.#bytes, width, 'LE');
      if (window instanceof Int32Array) this.#checkTokens(window, begin);
      x.set(head, row * block);
      y.set(tail, row * block);
    }
    return { x: { data: x, shape }, y: { data: y, shape: [...shape] } };
  }

  /** Checks that tokens fit into an int32. `begin` is the position of the first one in the file. */
  #checkTokens(tokens: Int32Array, begin: number): void {
    for (let i = 0; i < tokens.length; i++) {
      if (tokens[i]! >= 0) continue;
      const what = [`token ${begin + i} is too large`, 'tokens below 2^31', `${tokens[i]! >>> 0}`] as const;
      throw badFile('TokenFile', this.#file.path, what, 'Is the dtype another one?');
    }
  }

  /** Closes the file. Idempotent. */
  close(): void {
    this.#file.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
