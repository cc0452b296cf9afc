// Connections that may stay only for a limited time, such as those that are not admitted yet. Each has a deadline from
// the moment when it is added, and there are never more than `limit`, so that connections from outside the job cannot
// exhaust the process's file descriptors.

/** Callbacks for a connection that must be closed. */
export interface Refusal {
  /** Called when the connection's time is over. */
  readonly onTimeout: () => void;
  /** Called when another connection takes its slot. */
  readonly onOverflow: () => void;
}

export class PendingConnections {
  readonly #limit: number;
  readonly #timeoutMs: number;
  // The connection that has made no progress for the longest time comes first.
  readonly #timers = new Map<Refusal, NodeJS.Timeout>();

  constructor(limit: number, timeoutMs: number) {
    this.#limit = limit;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Adds a new connection. If there is no free slot, the connection that has made no progress for the longest
   * time loses its slot.
   */
  add(connection: Refusal): void {
    if (this.#timers.size === this.#limit) {
      const [oldest] = this.#timers.keys();
      this.remove(oldest!);
      oldest!.onOverflow();
    }
    const expire = () => {
      this.#timers.delete(connection);
      connection.onTimeout();
    };
    this.#timers.set(connection, setTimeout(expire, this.#timeoutMs).unref());
  }

  /** Notes that a connection has completed a step of its authentication. Its deadline does not change. */
  progress(connection: Refusal): void {
    const timer = this.#timers.get(connection);
    if (timer === undefined) return;
    this.#timers.delete(connection);
    this.#timers.set(connection, timer);
  }

  /** Removes a connection, for example one that has been admitted or has ended. Calls no callback. */
  remove(connection: Refusal): void {
    clearTimeout(this.#timers.get(connection));
    this.#timers.delete(connection);
  }
}
