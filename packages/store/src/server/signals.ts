// Listens to abort signals that outlive their listeners. AbortSignal.any() is not used: in Node 20 its results live as
// long as their sources, so each call on a long-lived store, or with the same signal, would leak memory.

const listenersOf = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `listener` when the signal is aborted, or at once if it has been. Returns a function that withdraws the
 * listener. The signal itself gets a single listener for any number of calls, so Node.js prints no leak warning.
 */
export function whenAborted(signal: AbortSignal, listener: () => void): () => void {
  if (signal.aborted) {
    listener();
    return () => {};
  }
  const listeners = listenersOf.get(signal) ?? attach(signal);
  const entry = () => listener(); // the same listener may come twice
  listeners.add(entry);
  return () => {
    listeners.delete(entry);
  };
}

function attach(signal: AbortSignal): Set<() => void> {
  const listeners = new Set<() => void>();
  listenersOf.set(signal, listeners);
  const run = () => {
    for (const listener of listeners) listener();
    listeners.clear();
  };
  signal.addEventListener('abort', run, { once: true });
  return listeners;
}

/** Returns a signal that follows the first of these signals that is aborted. release() detaches it from them. */
export function anyOf(signals: readonly (AbortSignal | undefined)[]): {
  readonly signal: AbortSignal;
  readonly release: () => void;
} {
  const controller = new AbortController();
  const withdrawals = signals.map(
    (signal) => signal && whenAborted(signal, () => controller.abort(signal.reason)),
  );
  const release = () => {
    for (const withdraw of withdrawals) withdraw?.();
  };
  return { signal: controller.signal, release };
}
