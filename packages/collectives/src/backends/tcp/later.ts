// Timers of a rank whose thread may be busy, or whose process may be stopped, when they are due.

export interface Later {
  readonly cancel: () => void;
}

/**
 * Calls `call` after `ms` milliseconds, when what has come on all connections until then has been read: it may be what
 * the timer has been waiting for. `isKept`: keeps the process alive until then.
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
