// Prints the ranks' output on one terminal. Every line gets its rank's prefix and is written whole, so that
// lines of several ranks never mix. A line without an end is kept until the rest of it arrives, it becomes too
// long, or the stream ends. A rank's output is read no faster than the terminal accepts it.

import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { styled } from '../cli/style.ts';
import type { LogFile } from './log-file.ts';

/** Writes whole lines. If it returns a promise, the caller must wait for it before it writes more. */
export type Write = (stream: 'stdout' | 'stderr', text: string) => Promise<void> | null;

/** Targets of a rank's streams. */
export type RankStreams = Readonly<Record<'stdout' | 'stderr', StreamTarget>>;

export interface StreamTarget {
  /** File that gets the unchanged bytes; null for none. */
  readonly file: string | null;
  readonly isShown: boolean;
}

const tailLines = 50;
/**
 * Maximum length of a line in characters. Longer lines are split, so that a line that never ends cannot fill
 * the memory.
 */
const maxLineLength = 1 << 20;

/** The output of one rank. */
export class RankOutput {
  /** The last lines of both streams, in order of arrival. */
  readonly tail: string[] = [];
  readonly #rank: number;
  readonly #write: Write;
  readonly #onLine: (line: string) => void;
  #heldStreams = 0;
  #releasedMs = 0; // when the terminal last stopped holding up a stream, on the clock of performance.now()

  constructor(rank: number, write: Write, onLine: (line: string) => void = () => {}) {
    this.#onLine = onLine;
    this.#rank = rank;
    this.#write = write;
  }

  /** Copies a stream to the terminal and to the file, which stays open. */
  copy(source: Readable, stream: 'stdout' | 'stderr', file: LogFile | null = null, isShown = true): void {
    let partial = '';
    const decoder = new StringDecoder('utf8');
    source.on('data', (chunk: Buffer) => {
      file?.write(chunk);
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
      partial += decoder.end(); // U+FFFD for the first bytes of a character whose other bytes have not come
      if (partial) void this.#emit(stream, [partial], isShown);
    });
  }

  /**
   * Returns whether the terminal has not held up any stream for `forMs`, so that all available output has
   * been read.
   */
  isIdle(forMs: number): boolean {
    return this.#heldStreams === 0 && performance.now() - this.#releasedMs >= forMs;
  }

  #emit(stream: 'stdout' | 'stderr', lines: readonly string[], isShown: boolean): Promise<void> | null {
    if (lines.length === 0) return null;
    lines.forEach(this.#onLine);
    this.tail.push(...lines.slice(-tailLines));
    this.tail.splice(0, this.tail.length - tailLines);
    if (!isShown) return null;
    const prefix = styled(stream, 'dim', `[${this.#rank}]`);
    return this.#write(stream, lines.map((line) => `${prefix} ${line}\n`).join(''));
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
