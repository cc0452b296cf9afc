import { setMaxListeners } from 'node:events';
import { badArgument } from './errors.ts';

/** What limited() resolves with when the time is over. */
export const expired: unique symbol = Symbol('expired');

/** Settles with `work`, or resolves with `expired` after `timeoutMs`, or rejects with the reason of a signal. */
export function limited<T>(
  work: Promise<T>,
  timeoutMs: number,
  signals: readonly (AbortSignal | undefined)[],
): Promise<T | typeof expired> {
  const { promise, resolve, reject } = withResolvers<T | typeof expired>();
  const timer = setTimeout(() => resolve(expired), timerMs(timeoutMs));
  const abort = () => reject(signals.find((signal) => signal?.aborted)?.reason);
  for (const signal of signals) {
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort);
  }
  work.then(resolve, reject);
  return promise.finally(() => {
    clearTimeout(timer);
    for (const signal of signals) signal?.removeEventListener('abort', abort);
  });
}

/** An AbortController that any number of pending calls may listen to without a warning from Node. */
export function manyListeners(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

/** setTimeout() would take a longer time for 1 ms. */
export function timerMs(timeoutMs: number): number {
  return Math.min(timeoutMs, 2 ** 31 - 1);
}

export function checkTimeout(verb: string, timeoutMs: number): number {
  if (typeof timeoutMs === 'number' && timeoutMs >= 0) return timeoutMs;
  throw badArgument(verb, 'timeoutMs to be a number of milliseconds >= 0', timeoutMs);
}

/** Promise.withResolvers, which Node 20 lacks. */
export function withResolvers<T>(): {
  promise: Promise<T>;
  resolve: (value: T | PromiseLike<T>) => void;
  reject: (reason: unknown) => void;
} {
  let resolve!: (value: T | PromiseLike<T>) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
