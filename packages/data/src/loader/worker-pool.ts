// The workers of a loader. Batches are assigned to them in turn. The consumer (prefetch.ts) requests and receives
// batches in order. It requests only as many as it may hold, so workers cannot get further ahead.
import type { Indices } from '../datasets/dataset.ts';
import type { Origin } from '../datasets/dataset-module.ts';
import type { Loaded, Pass } from './pass.ts';
import { WorkerThread } from './worker-thread.ts';

export interface WorkerPoolOptions {
  readonly numWorkers: number;
  readonly workerSeed: number;
  readonly timeoutMs: number;
  /** Whether the loader yields single samples. */
  readonly isSingle: boolean;
}

export class WorkerPool {
  readonly #threads: readonly WorkerThread[];
  #turn = 0;

  constructor(origin: Origin, { numWorkers: count, workerSeed, timeoutMs, isSingle }: WorkerPoolOptions) {
    this.#threads = Array.from({ length: count }, (_, id) => {
      return new WorkerThread(origin, { id, count, seed: workerSeed + id }, timeoutMs, isSingle);
    });
  }

  async load<B>(indices: Indices): Promise<B> {
    const thread = this.#threads[this.#turn++ % this.#threads.length]!;
    const loaded = await thread.ask({ indices: new Int32Array(indices) });
    return loaded!.batch as B;
  }

  /**
   * Returns a pass over the streams of all workers, one batch from each in turn, until the last stream has
   * ended.
   */
  stream<B>(batchSize: number, dropLast: boolean): Pass<B> {
    const open = this.#threads.map((thread) => ({ thread, hasBegun: false }));
    let turn = 0;
    const next = async (): Promise<Loaded<B> | undefined> => {
      while (open.length > 0) {
        const worker = open[turn++ % open.length]!;
        const restart = !worker.hasBegun;
        worker.hasBegun = true;
        const loaded = await worker.thread.ask({ stream: { batchSize, dropLast, restart } });
        if (loaded !== null) return loaded as Loaded<B>;
        if (open.includes(worker)) open.splice(open.indexOf(worker), 1);
      }
      return undefined;
    };
    // A thread that has failed has no stream to close, and its error was reported at its batch.
    const close = async (): Promise<void> => {
      const left = open.filter(({ thread, hasBegun }) => hasBegun && !thread.hasFailed);
      await Promise.all(left.map(({ thread }) => thread.ask({ close: true })));
    };
    return { next, takeReady: this.takeReady, close };
  }

  /** Whether a thread has ended or timed out. */
  get hasFailed(): boolean {
    return this.#threads.some((thread) => thread.hasFailed);
  }

  /** Settles the tasks that workers have answered. Returns the number of tasks that are left. */
  readonly takeReady = (): number => {
    let underWay = 0;
    for (const thread of this.#threads) {
      thread.takeAnswers();
      underWay += thread.underWay;
    }
    return underWay;
  };

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }
}
