// What the ranks print, on one terminal: every line gets its rank's prefix and leaves whole, so that lines of
// several ranks never mix. A line without an end is held until the rest of it arrives or the stream ends. A rank is
// read no faster than the terminal takes it.

import { writeSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/** Writes whole lines. If it returns a promise, the caller writes no more until that resolves. */
export type Write = (stream: 'stdout' | 'stderr', text: string) => Promise<void> | null;

/** Where the streams of a rank go. */
export type RankStreams = Readonly<Record<'stdout' | 'stderr', StreamTarget>>;

export interface StreamTarget {
  /** Gets the bytes as they are; null: no file. */
  readonly file: string | null;
  readonly isShown: boolean;
}

const tailLines = 50;
/** Longer lines are cut, so that a rank that never ends its line cannot fill the memory. */
const maxLineLength = 1 << 20;

/** The output of one rank. */
export class RankOutput {
  /** The last lines, of both streams in order of arrival. */
  readonly tail: string[] = [];
  readonly #prefix: string;
  readonly #write: Write;
  readonly #onLine: (line: string) => void;
  #heldStreams = 0;
  #releasedMs = 0; // when the last stream was read again, on the clock of performance.now()

  constructor(rank: number, write: Write, onLine: (line: string) => void = () => {}) {
    this.#onLine = onLine;
    this.#prefix = `[${rank}] `;
    this.#write = write;
  }

  /** `fd` is a file that gets the bytes too; it stays open. */
  copy(source: Readable, stream: 'stdout' | 'stderr', fd: number | null = null, isShown = true): void {
    let partial = '';
    const decoder = new StringDecoder('utf8');
    source.on('data', (chunk: Buffer) => {
      if (fd !== null) writeSync(fd, chunk);
      const lines = (partial + decoder.write(chunk)).split('\n');
      partial = lines.pop()!;
      if (partial.length > maxLineLength) {
        lines.push(partial);
        partial = '';
      }
      const full = this.#emit(stream, lines, isShown);
      if (full) void this.#hold(source, full);
    });
    source.on('close', () => {
      if (partial) void this.#emit(stream, [partial], isShown);
    });
  }

  /** Whether the terminal has held up nothing for so long that all must have been read that was there to read. */
  isIdle(forMs: number): boolean {
    return this.#heldStreams === 0 && performance.now() - this.#releasedMs >= forMs;
  }

  #emit(stream: 'stdout' | 'stderr', lines: readonly string[], isShown: boolean): Promise<void> | null {
    if (lines.length === 0) return null;
    lines.forEach(this.#onLine);
    this.tail.push(...lines.slice(-tailLines));
    this.tail.splice(0, this.tail.length - tailLines);
    if (!isShown) return null;
    return this.#write(stream, lines.map((line) => `${this.#prefix}${line}\n`).join(''));
  }

  async #hold(source: Readable, full: Promise<void>): Promise<void> {
    source.pause();
    this.#heldStreams++;
    await full;
    this.#heldStreams--;
    this.#releasedMs = performance.now();
    source.resume();
  }
}
