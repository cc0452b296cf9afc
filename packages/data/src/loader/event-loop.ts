// Yields to the event loop in loops that otherwise never do. If data set and step are synchronous, `for await` only
// awaits resolved promises, and timers, sockets and finalizers would wait until the end of the epoch.
import { setImmediate } from 'node:timers/promises';

/** Milliseconds after which a loop must yield. A single batch or step may take longer and block for that time. */
const longestMs = 50;

/** Tracks when a loop must yield next. */
export class EventLoopTurns {
  #lastMs = performance.now();

  isDue(): boolean {
    return performance.now() - this.#lastMs >= longestMs;
  }

  /** Resolves after one turn of the event loop. */
  async take(): Promise<void> {
    await setImmediate();
    this.#lastMs = performance.now();
  }
}
