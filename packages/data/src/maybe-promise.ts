// Functions that load samples and batches return either a value or a promise, so that synchronous data sets do not pay
// for promises.

export type MaybePromise<T> = T | Promise<T>;

export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}
