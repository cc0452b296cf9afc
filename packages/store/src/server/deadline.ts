// Time limits of promises.

import { whenAborted } from './signals.ts';

/** Result of limited() when the time is over. */
export const expired: unique symbol = Symbol('expired');

/**
 * Settles with `work`, resolves with `expired` after `timeoutMs` milliseconds, or rejects with the reason of
 * a signal.
 */
export function limited<T>(
  work: Promise<T>,
  timeoutMs: number,
  signals: readonly (AbortSignal | undefined)[],
): Promise<T | typeof expired> {
  const { promise, resolve, reject } = withResolvers<T | typeof expired>();
  const timer = setTimeout(() => resolve(expired), timerMs(timeoutMs));
  const withdrawals = signals.map((signal) => signal && whenAborted(signal, () => reject(signal.reason)));
  work.then(resolve, reject);
  return promise.finally(() => {
    clearTimeout(timer);
    for (const withdraw of withdrawals) withdraw?.();
  });
}

/** Limits a timeout to the maximum of setTimeout(), which treats longer ones as 1 ms. */
export function timerMs(timeoutMs: number): number {
  return Math.min(timeoutMs, 2 ** 31 - 1);
}

/** Does what Promise.withResolvers() does, which Node 20 does not have. */
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
