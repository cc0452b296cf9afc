// One worker thread as the loader sees it: tasks out, answers back, and what became of it. It keeps the process alive only
// while a task is under way.
import { Worker } from 'node:worker_threads';
import type { Origin } from './dataset-module.ts';
import { workerEnded, workerFailed, workerTimeout } from './errors.ts';
import type { Loaded } from './pass.ts';
import { type WorkerInfo, workerKey } from './worker-info.ts';

export interface StreamBatching {
  readonly batchSize: number;
  readonly dropLast: boolean;
  /** Whether this is the first batch of a pass. */
  readonly restart: boolean;
}

export type Task = { readonly id: number } & (
  | { readonly indices: Int32Array }
  | { readonly stream: StreamBatching }
);
/** A task without its number. */
export type Request = { readonly indices: Int32Array } | { readonly stream: StreamBatching };

/** `loaded` is null at the end of a stream. */
export type Answer = { readonly id: number } & (
  | { readonly loaded: Loaded<unknown> | null }
  | { readonly error: unknown }
);

interface Waiting {
  readonly resolve: (loaded: Loaded<unknown> | null) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

export class WorkerThread {
  readonly #info: WorkerInfo;
  readonly #timeoutMs: number;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #exited: Promise<void>;
  #nextId = 0;
  #failure: Error | null = null;

  constructor(origin: Origin, info: WorkerInfo, timeoutMs: number) {
    this.#info = info;
    this.#timeoutMs = timeoutMs;
    // The build puts the worker's entry beside this module.
    const entry = new URL('./worker-main.js', import.meta.url);
    const worker = new Worker(entry, { workerData: { [workerKey]: { origin, info } } });
    this.#worker = worker;
    worker.unref();
    worker.on('message', (answer: Answer) => this.#settle(answer));
    worker.on('error', (cause) => this.#fail(workerFailed(info.id, cause)));
    this.#exited = new Promise((resolve) => {
      worker.once('exit', (exitCode) => {
        this.#fail(workerEnded(info.id, exitCode));
        resolve();
      });
    });
  }

  ask(request: Request): Promise<Loaded<unknown> | null> {
    if (this.#failure) return Promise.reject(this.#failure);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#fail(workerTimeout(this.#info.id, this.#timeoutMs));
        void this.close();
      }, this.#timeoutMs);
      timer.unref();
      this.#waiting.set(id, { resolve, reject, timer });
      this.#worker.ref();
      this.#worker.postMessage({ id, ...request } satisfies Task);
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
    await this.#exited;
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    if (!waiting) return;
    this.#waiting.delete(answer.id);
    clearTimeout(waiting.timer);
    if (this.#waiting.size === 0) this.#worker.unref();
    if ('error' in answer) waiting.reject(workerFailed(this.#info.id, answer.error));
    else waiting.resolve(answer.loaded);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(this.#failure);
    }
    this.#waiting.clear();
  }
}
