// The workers of a loader. Batches are assigned to them in turn. The consumer (prefetch.ts) requests batches
// in order and receives them in order, and requests no more than it may hold, which is the backpressure.
import type { Indices } from '../datasets/dataset.ts';
import type { Origin } from '../datasets/dataset-module.ts';
import type { Loaded, Pass } from './pass.ts';
import { WorkerThread } from './worker-thread.ts';

export interface WorkerPoolOptions {
  readonly numWorkers: number;
  readonly workerSeed: number;
  readonly timeoutMs: number;
}

export class WorkerPool {
  readonly #threads: readonly WorkerThread[];
  #turn = 0;

  constructor(origin: Origin, { numWorkers: count, workerSeed, timeoutMs }: WorkerPoolOptions) {
    this.#threads = Array.from({ length: count }, (_, id) => {
      return new WorkerThread(origin, { id, count, seed: workerSeed + id }, timeoutMs);
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
    return { next, takeReady: this.takeReady, close: () => {} };
  }

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
