// One TCP connection to a store server. Requests are pipelined, and replies come in the order of the
// requests. The first error ends the connection and rejects all pending and later requests.

import { connect, type Socket } from 'node:net';
import { closedByServer, lost, malformed } from '../errors.ts';
import { withResolvers } from '../server/deadline.ts';
import { whenAborted } from '../server/signals.ts';
import { ByteQueue, Parser, type Reading } from '../wire/byte-queue.ts';
import { keysArgument, readByte, typeByte } from '../wire/wire.ts';

interface Pending {
  /** Parses bytes from the queue. Returns true when the reply is complete. */
  readonly advance: () => boolean;
  readonly reject: (error: Error) => void;
  /** Name of the call. */
  readonly verb: string | undefined;
}

export class Connection {
  readonly #socket: Socket;
  readonly #queue = new ByteQueue();
  readonly #pending = new Set<Pending>(); // in the order of the requests
  readonly #ended = new AbortController();

  private constructor(socket: Socket, where: string) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 30_000);
    // The timer of a pending call keeps the process alive. An idle client does not, nor a call that has been given up.
    socket.unref();
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', (error) => this.end(lost(where, error)));
    socket.on('close', () => {
      const [oldest] = this.#pending; // if the server closed the connection to refuse a call, it is this one
      this.end(closedByServer(where, oldest?.verb));
    });
  }

  /** Connects once. Rejects with the socket's error, or with the reason of `signal`. */
  static async open(host: string, port: number, where: string, signal: AbortSignal): Promise<Connection> {
    signal.throwIfAborted();
    const socket = connect({ host, port });
    const { promise, resolve, reject } = withResolvers<void>();
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort);
    socket.once('connect', resolve).once('error', reject);
    try {
      await promise;
    } catch (error) {
      socket.destroy();
      throw error;
    } finally {
      signal.removeEventListener('abort', abort);
      socket.off('error', reject);
    }
    return new Connection(socket, where);
  }

  /** Signal that is aborted when the connection ends; its reason is the error. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /**
   * Sends bytes and parses the reply with `reply`. Resolves with the result. Has no deadline of its own: a timer of the
   * caller has to keep the process alive. `verb` is the call that an error names.
   */
  request<T>(bytes: Uint8Array, reply: Reading<T>, verb?: string): Promise<T> {
    if (this.ended.aborted) return Promise.reject(this.ended.reason);
    const { promise, resolve, reject } = withResolvers<T>();
    const parser = new Parser(reply);
    const advance = () => {
      const result = parser.advance(this.#queue);
      if (result) resolve(result.value);
      return result !== undefined;
    };
    this.#pending.add({ advance, reject, verb });
    this.#socket.write(bytes);
    this.#settle(); // a reply may have no bytes
    return promise;
  }

  /** Calls `listener` when the connection ends, or at once if it has ended. */
  whenEnded(listener: () => void): void {
    whenAborted(this.ended, listener);
  }

  /**
   * Asks the server to reply when all keys exist. `done` resolves with true when they do, or with false after cancel().
   * Do not send other requests on this connection before `done` has settled.
   */
  wait(keys: readonly string[]): { readonly done: Promise<boolean>; readonly cancel: () => void } {
    const state = { isAnswered: false, isCancelled: false };
    const frame = Buffer.concat([typeByte('wait'), keysArgument(keys)]);
    const cancel = () => {
      if (state.isAnswered || state.isCancelled || this.ended.aborted) return;
      state.isCancelled = true;
      this.#socket.write(typeByte('cancelWait'));
    };
    return { done: this.request(frame, readWaitReply(state)), cancel };
  }

  /** Closes the connection; all pending and later requests reject with `error`. */
  end(error: Error): void {
    if (this.ended.aborted) return;
    this.#ended.abort(error);
    this.#socket.destroy();
    for (const pending of this.#pending) pending.reject(error);
    this.#pending.clear();
  }

  #receive(chunk: Buffer): void {
    this.#queue.push(chunk);
    this.#settle();
  }

  /** Settles the pending requests whose replies have arrived. */
  #settle(): void {
    try {
      for (const pending of this.#pending) {
        if (!pending.advance()) return;
        this.#pending.delete(pending);
      }
      if (this.#queue.length > 0) throw malformed('reply without a request', `${this.#queue.length} bytes`);
    } catch (error) {
      this.end(error as Error);
    }
  }
}

/**
 * Parses the reply to a wait, which is 0. The reply to a cancelled wait is 1, or 0 and 1 if the server had sent the 0
 * before it read the cancellation. Returns whether there was a 0.
 */
function* readWaitReply(state: { isAnswered: boolean; isCancelled: boolean }): Reading<boolean> {
  const first = yield* readByte();
  const last = first === 0 && state.isCancelled ? yield* readByte() : first;
  state.isAnswered = true;
  if (last !== (state.isCancelled ? 1 : 0)) throw malformed('reply to wait', last);
  return first === 0;
}
