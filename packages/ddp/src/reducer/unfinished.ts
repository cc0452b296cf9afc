/** The calls of finish() that wait, by the group of their models. */
const waits = new WeakMap<object, Set<Promise<void>>>();

/** Returns `wait`, the wait of a call of finish(), until whose end afterTurn() does not call its check. */
export function finishing(group: object, wait: Promise<void>): Promise<void> {
  const running = waits.get(group) ?? new Set();
  waits.set(group, running.add(wait));
  const end = () => void running.delete(wait);
  void wait.then(end, end);
  return wait;
}

/**
 * Calls `check` when the program has had time to call finish(): in the next turn, or later while the program awaits
 * finish() of models of `group`. It may call them one after another, if one backward has gone through several models.
 */
export function afterTurn(group: object, check: () => void): void {
  setImmediate(() => {
    const running = waits.get(group);
    if (!running?.size) check();
    else void Promise.allSettled(running).then(() => afterTurn(group, check));
  });
}

/**
 * Warns that the gradients of a backward are not averaged, because `backend` cannot block and finish() is not called.
 */
export function warnUnfinished(backend: string): void {
  process.emitWarning(
    `ddp: backward has ended and finish() has not been called. The backend ${backend} cannot block, so gradients are ` +
      'averaged only by finish(). Call await model.finish() after backward and before optimizer.step().',
    { code: 'RINGWISE_DDP_UNFINISHED' },
  );
}
