/**
 * Resolves or rejects as `call` does, or rejects with the signal's reason if that is aborted before. `call` goes on
 * then; its error is dropped.
 * @internal
 */
export function untilAborted<T>(signal: AbortSignal | undefined, call: Promise<T>): Promise<T> {
  if (signal === undefined) return call;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    call.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
