// Turns of the event loop in a loop that else has none. Where data set and step are synchronous, `for await` runs on
// promises that are ready, and timers, sockets and the callbacks of the collector would wait until the end of the epoch.
import { setImmediate } from 'node:timers/promises';

/** Milliseconds that a loop may keep others from their turn. */
const longestMs = 50;

/** When the next turn is due in one loop. */
export class EventLoopTurns {
  #lastMs = performance.now();

  isDue(): boolean {
    return performance.now() - this.#lastMs >= longestMs;
  }

  /** Resolves after one turn. */
  async take(): Promise<void> {
    await setImmediate();
    this.#lastMs = performance.now();
  }
}
