// Connections that have not been admitted yet. Each has a deadline that starts when it is accepted, and there are never
// more than `limit`: so connections from outside the job cannot use up the process's file descriptors.

/** What happens to a connection that is not admitted. */
export interface Refusal {
  /** Its time is over. */
  readonly onTimeout: () => void;
  /** Another connection needs its slot. */
  readonly onOverflow: () => void;
}

export class PendingConnections {
  readonly #limit: number;
  readonly #timeoutMs: number;
  readonly #timers = new Map<Refusal, NodeJS.Timeout>(); // the one that has made no progress for longest comes first

  constructor(limit: number, timeoutMs: number) {
    this.#limit = limit;
    this.#timeoutMs = timeoutMs;
  }

  /** Takes a new connection in; if there is no slot left, the one that has made no progress for longest loses its own. */
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

  /** The connection has done one more step of its authentication. Its deadline stays. */
  progress(connection: Refusal): void {
    const timer = this.#timers.get(connection);
    if (timer === undefined) return;
    this.#timers.delete(connection);
    this.#timers.set(connection, timer);
  }

  /** The connection has been admitted, or has ended. */
  remove(connection: Refusal): void {
    clearTimeout(this.#timers.get(connection));
    this.#timers.delete(connection);
  }
}
