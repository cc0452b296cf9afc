// Timers that stay correct if the thread was busy, or the process was stopped, when they were due.

export interface Later {
  readonly cancel: () => void;
}

/**
 * Calls `call` after `ms` milliseconds, but first reads the data that has arrived on all connections by then, because
 * it may include the awaited event. With `isKept`, the timer keeps the process alive.
 */
export function later(ms: number, call: () => void, isKept = true): Later {
  let immediate: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    immediate = setImmediate(call);
  }, ms);
  if (!isKept) timer.unref();
  return {
    cancel: () => {
      clearTimeout(timer);
      clearImmediate(immediate);
    },
  };
}
