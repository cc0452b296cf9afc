// The loader's side of one worker thread. It sends tasks, receives answers, detects the thread's end, and keeps the
// process alive only while a task is pending.
//
// After a step of some milliseconds little of this code is still in the CPU caches, so each line costs ten times as
// much as in a tight loop. Therefore there is one timer for all tasks, and answers can be received without a turn of
// the event loop.

import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import type { Origin } from '../datasets/dataset-module.ts';
import { argsNotSent, workerEnded, workerFailed, workerTimeout } from '../errors.ts';
import { builtFile } from '../package-files.ts';
import type { Loaded } from './pass.ts';
import { type SentError, unpacked } from './sent-error.ts';
import { registrarsFor } from './typescript.ts';
import { type WorkerInfo, workerKey } from './worker-info.ts';

/** Node.js fires a timer with a longer delay, in milliseconds, at once. */
const longestTimerMs = 2 ** 31 - 1;

export interface StreamBatching {
  readonly batchSize: number;
  readonly dropLast: boolean;
  /** Whether this is the first batch of a pass. */
  readonly restart: boolean;
}

/** A request to a thread: for a batch of samples, for the next batch of its stream, or to close the stream's pass. */
export type Request =
  | { readonly indices: Int32Array }
  | { readonly stream: StreamBatching }
  | { readonly close: true };
export type Task = { readonly id: number } & Request;

/** `loaded` is null at the end of a stream and after it was closed. */
export type Answer = { readonly id: number } & ({ readonly loaded: Loaded<unknown> | null } | SentError);

interface Waiting {
  readonly resolve: (loaded: Loaded<unknown> | null) => void;
  readonly reject: (error: Error) => void;
  readonly askedMs: number;
}

export class WorkerThread {
  readonly #info: WorkerInfo;
  readonly #timeoutMs: number;
  readonly #worker: Worker;
  readonly #port: MessagePort;
  /** Pending tasks in the order in which they were requested. */
  readonly #waiting = new Map<number, Waiting>();
  readonly #exited: Promise<void>;
  #watch: NodeJS.Timeout | null = null;
  #nextId = 0;
  #failure: Error | null = null;

  constructor(origin: Origin, info: WorkerInfo, timeoutMs: number, isSingle: boolean) {
    this.#info = info;
    this.#timeoutMs = timeoutMs;
    const { port1, port2 } = new MessageChannel();
    const entry = builtFile('worker-main.js');
    const registrars = registrarsFor(origin.url);
    const workerData = { [workerKey]: { origin, registrars, info, port: port2, isSingle } };
    const worker = startThread(entry, workerData, port2);
    this.#worker = worker;
    this.#port = port1;
    port1.on('message', (answer: Answer) => this.#settle(answer));
    port1.unref();
    worker.unref();
    worker.on('error', (cause) => {
      this.takeAnswers();
      this.#fail(workerFailed(info.id, cause));
    });
    this.#exited = new Promise((resolve) => {
      worker.once('exit', (exitCode) => {
        this.takeAnswers();
        this.#fail(workerEnded(info.id, exitCode));
        port1.close();
        resolve();
      });
    });
  }

  /**
   * Sends a task. Resolves with its batch, or null at the end of a stream and after `close`. Rejects if the task fails
   * or times out, or if the thread has ended or timed out before.
   */
  ask(request: Request): Promise<Loaded<unknown> | null> {
    if (this.#failure) return Promise.reject(this.#failure);
    const id = this.#nextId++;
    if (this.#waiting.size === 0) this.#worker.ref();
    this.#watch ??= this.#watchFor(this.#timeoutMs);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, askedMs: performance.now() });
      this.#port.postMessage({ id, ...request } satisfies Task);
    });
  }

  /** Whether the thread has ended or timed out. All its tasks then reject with the same error. */
  get hasFailed(): boolean {
    return this.#failure !== null;
  }

  /** Number of tasks without an answer. */
  get underWay(): number {
    return this.#waiting.size;
  }

  /** Settles the tasks that have been answered, without waiting for the event loop's next turn. */
  takeAnswers(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#port) as { readonly message: Answer } | undefined;
      if (!received) return;
      this.#settle(received.message);
    }
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
    await this.#exited;
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    if (!waiting) return;
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0) this.#worker.unref();
    if ('error' in answer) waiting.reject(workerFailed(this.#info.id, unpacked(answer)));
    else waiting.resolve(answer.loaded);
  }

  #watchFor(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#check(), Math.min(ms, longestTimerMs)).unref();
  }

  /** Fails all tasks if the oldest one has timed out; otherwise sets the timer for the time when it would. */
  #check(): void {
    this.takeAnswers(); // answers may have been waiting while a long step blocked this thread
    this.#watch = null;
    const [oldest] = this.#waiting.values();
    if (oldest === undefined) return; // ask() sets the timer again
    const leftMs = oldest.askedMs + this.#timeoutMs - performance.now();
    if (leftMs > 0) {
      this.#watch = this.#watchFor(leftMs);
      return;
    }
    this.#fail(workerTimeout(this.#info.id, this.#timeoutMs));
    void this.close();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#failure);
    this.#waiting.clear();
    if (this.#watch) clearTimeout(this.#watch);
    this.#watch = null;
  }
}

/** Throws ERR_DATA_ARGUMENT if the arguments of the data set cannot be sent. */
function startThread(entry: string | URL, workerData: object, port: MessagePort): Worker {
  try {
    return new Worker(entry, { workerData, transferList: [port] });
  } catch (error) {
    throw (error as Error).name === 'DataCloneError' ? argsNotSent(error) : error;
  }
}
