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
