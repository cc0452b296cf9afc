// A line at the bottom of a terminal with the state of the job, below the output of the ranks. The cursor
// stays at its beginning, so that the terminal's echo (^C) and a shell's prompt overwrite it. monitor.ts uses it
// only if stderr is a terminal.

import type { Write } from '../report/output.ts';
import type { JobView } from './job-view.ts';

/** A terminal stream such as process.stderr. */
export interface TerminalStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly write: (text: string) => unknown;
  readonly on: (event: 'resize', listener: () => void) => unknown;
  readonly off: (event: 'resize', listener: () => void) => unknown;
}

export interface StatusLine {
  readonly write: Write;
  readonly close: () => void;
}

/** Delay before the first drawing, so that short jobs leave no trace on the terminal. */
const firstMs = 500;
const everyMs = 200;
const clearLine = '\r\x1b[K';

/**
 * Writes lines through `write` and draws the status on `stream`, the terminal's stderr. `text` returns the
 * status.
 */
export function statusLine(
  write: Write,
  isTerminal: Readonly<Record<'stdout' | 'stderr', boolean>>,
  stream: TerminalStream,
  text: () => string,
): StatusLine {
  let shown = '';
  let isOn = false;

  function line(): string {
    shown = text().slice(0, Math.max(0, (stream.columns ?? 80) - 1));
    return `${shown}\r`;
  }

  function draw(): void {
    isOn = true;
    const before = shown;
    const next = line();
    if (shown !== before) stream.write(clearLine + next);
  }

  // If the terminal has become narrower than the line, the terminal has wrapped the line into several rows.
  function redraw(): void {
    if (!isOn) return;
    const rows = Math.max(0, Math.ceil(shown.length / (stream.columns ?? 80)) - 1);
    stream.write(`\r${rows > 0 ? `\x1b[${rows}A` : ''}\x1b[J${line()}`);
  }

  const first = setTimeout(draw, firstMs);
  const timer = setInterval(() => isOn && draw(), everyMs);
  stream.on('resize', redraw);
  return {
    write: (name, lines) => write(name, isOn && isTerminal[name] ? `${clearLine}${lines}${shown}\r` : lines),
    close: () => {
      clearTimeout(first);
      clearInterval(timer);
      stream.off('resize', redraw);
      if (isOn) stream.write(clearLine);
      isOn = false;
    },
  };
}

/** Returns a text such as "ringwise  1:23  2 ranks  step 120/900  0:40 left  loss 0.213  8140 samples/s". */
export function statusText(view: JobView, nowMs: number): string {
  const { worldSize, hosts, restarts, step, samplesPerSecond: rate } = view;
  const { epoch, epochs, steps } = view.progress;
  const leftMs = view.progress.etaMs(nowMs);
  const { last, losses, leaves, joins } = view.membership;
  const ranks = last && last.ranks !== worldSize ? `${last.ranks} of ${worldSize}` : `${worldSize}`;
  const ofTotal = (total: number | null) => (total === null ? '' : `/${total}`);
  const loss = view.curves.get('loss')?.last ?? null;
  return [
    'ringwise',
    duration(view.elapsedMs(nowMs)),
    `${ranks} rank${worldSize === 1 ? '' : 's'}${hosts > 1 ? ` on ${hosts} hosts` : ''}`,
    ...(last === null ? [] : [`view ${last.number}`]),
    ...(losses > 0 ? [`${losses} lost`] : []),
    ...(leaves > 0 ? [`${leaves} left`] : []),
    ...(joins > 0 ? [`${joins} joined`] : []),
    ...(restarts > 0 ? [`${restarts} restart${restarts === 1 ? '' : 's'}`] : []),
    ...(epoch === null ? [] : [`epoch ${Math.floor(epoch) + 1}${ofTotal(epochs)}`]),
    ...(step === null ? [] : [`step ${step}${ofTotal(steps)}`]),
    ...(leftMs === null ? [] : [`${duration(leftMs)} left`]),
    ...(loss === null ? [] : [`loss ${Number.isFinite(loss) ? Number(loss.toPrecision(4)) : loss}`]),
    ...(rate === null ? [] : [`${Number(rate.toPrecision(4))} samples/s`]),
  ].join('  ');
}

/** Formats a duration: 75,000 ms is 1:15. */
function duration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const two = (value: number) => `${value}`.padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${two(seconds % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}
