// Synchronous data sets must not have the cost of promises, so the functions that load samples and batches return
// either a value or a promise.

export type MaybePromise<T> = T | Promise<T>;

export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}
