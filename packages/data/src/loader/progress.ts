// A progress line on a terminal for a loop over a DataLoader. Under `ringwise run`, where ranks print into pipes, the
// launcher shows the line of rank 0. If the output is neither, nothing is computed or written.

import { DataError, outOfRange } from '../errors.ts';
import { checkedOptions, optionNames } from '../options.ts';
import type { DataLoader } from './data-loader.ts';
import type { LoaderStatistics } from './wait-times.ts';

/** A terminal stream such as process.stderr. */
export interface ProgressStream {
  /** Whether the stream is a terminal, where a line can be drawn again. */
  readonly isTTY?: boolean;
  /** Width of the terminal in characters. */
  readonly columns?: number;
  /** Writes a text. */
  readonly write: (text: string) => unknown;
}

/** Options of progress(). */
export interface ProgressOptions {
  /** Text at the start of the line. */
  readonly label?: string;
  /** Stream to draw on. Default process.stderr. */
  readonly stream?: ProgressStream;
}

const names = optionNames<ProgressOptions>({ label: true, stream: true });

const refreshMs = 100;
const barWidth = 20;
const toLineStart = '\r\x1b[K'; // moves to the start of the line and clears it

/**
 * Symbol of a function that the launcher installs in rank 0 to show a line. `isEnd` is true for the last line of a
 * pass.
 */
const progressSymbol = Symbol.for('ringwise.progress');
type ShowProgress = (line: string, isEnd: boolean) => void;

/**
 * Yields the batches of one pass over `loader`. On a terminal, a line shows the number of batches, samples
 * per second, the share of time that the loop waited for data, and the remaining time. The line stays when
 * the loop ends. Under `ringwise run`, the line of rank 0 is part of the launcher's status line, or is printed
 * every 10 s where the launcher has no terminal; its last state is printed when the loop ends.
 */
export function progress<T, B>(
  loader: DataLoader<T, B>,
  options?: ProgressOptions,
): AsyncGenerator<B, void, undefined> {
  const { label = '', stream = process.stderr } = checkedOptions('progress', options, names);
  if (typeof loader?.statistics !== 'function') throw outOfRange('progress: loader', 'a DataLoader', loader);
  if (typeof label !== 'string') throw outOfRange('progress: label', 'a string', label);
  return followed(loader, label, stream);
}

async function* followed<T, B>(
  loader: DataLoader<T, B>,
  label: string,
  stream: ProgressStream,
): AsyncGenerator<B, void, undefined> {
  const show = stream.isTTY ? onTerminal(stream) : stream === process.stderr ? onLauncher() : undefined;
  if (show === undefined) {
    yield* loader;
    return;
  }
  const total = batchesOf(loader);
  const before = loader.statistics();
  const beginMs = performance.now();
  let done = 0;
  let drawnMs = -Infinity;
  const draw = (nowMs: number, isEnd = false) => {
    drawnMs = nowMs;
    const line = progressLine(done, total, since(before, loader.statistics()), nowMs - beginMs);
    show(`${label} ${line}`.trim(), isEnd);
  };
  try {
    for await (const batch of loader) {
      yield batch;
      done++;
      const nowMs = performance.now();
      if (nowMs - drawnMs >= refreshMs) draw(nowMs);
    }
  } finally {
    draw(performance.now(), true);
  }
}

function onTerminal(stream: ProgressStream): ShowProgress {
  return (line, isEnd) => {
    stream.write(toLineStart + line.slice(0, (stream.columns ?? 80) - 1));
    if (isEnd) stream.write('\n');
  };
}

function onLauncher(): ShowProgress | undefined {
  return (globalThis as { [progressSymbol]?: ShowProgress })[progressSymbol];
}

/** Returns the number of batches, or null if it is known only after the pass. */
function batchesOf(loader: { readonly length: number }): number | null {
  try {
    return loader.length;
  } catch (error) {
    if (DataError.isInstance(error) && error.code === 'ERR_DATA_LENGTH') return null;
    throw error;
  }
}

type Since = Pick<LoaderStatistics, 'samples' | 'waitMs' | 'workMs'>;

function since(before: LoaderStatistics, now: LoaderStatistics): Since {
  return {
    samples: now.samples - before.samples,
    waitMs: now.waitMs - before.waitMs,
    workMs: now.workMs - before.workMs,
  };
}

/** Formats the line, without the label. `total` is null if the number of batches is not known. */
export function progressLine(
  done: number,
  total: number | null,
  { samples, waitMs, workMs }: Since,
  elapsedMs: number,
): string {
  const busyMs = waitMs + workMs;
  const rate = busyMs > 0 ? `${Math.round((samples * 1000) / busyMs)} samples/s` : '';
  const waited = busyMs > 0 ? `waited ${Math.round((100 * waitMs) / busyMs)} %` : '';
  const isEnded = total !== null && done >= total;
  const leftMs = total === null || done === 0 ? null : (elapsedMs / done) * Math.max(0, total - done);
  const time = isEnded || leftMs === null ? clock(elapsedMs) : `${clock(leftMs)} left`;
  return [bar(done, total), total === null ? `${done} batches` : `${done}/${total}`, rate, waited, time]
    .filter((part) => part !== '')
    .join('  ');
}

function bar(done: number, total: number | null): string {
  if (total === null || total === 0) return '';
  const filled = Math.round((barWidth * Math.min(done, total)) / total);
  return '█'.repeat(filled) + '░'.repeat(barWidth - filled);
}

/** Formats a duration: 75,000 ms is 1:15. */
function clock(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  const two = (value: number) => String(value).padStart(2, '0');
  const rest = `${two(minutes % 60)}:${two(seconds % 60)}`;
  return minutes < 60 ? rest.replace(/^0/, '') : `${Math.floor(minutes / 60)}:${rest}`;
}
