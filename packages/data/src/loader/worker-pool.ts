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
   * ended. The streams may differ in length; their batches come in the same order in every run.
   */
  stream<B>(batchSize: number, dropLast: boolean): Pass<B> {
    const workers = this.#threads.map((thread) => ({ thread, hasBegun: false, hasEnded: false }));
    let turn = 0;
    /** Requests whose batch was not handed out yet, in order. The answer at the end of a stream is null. */
    const asked: { worker: (typeof workers)[number]; answer: Promise<Loaded<unknown> | null> }[] = [];
    const ask = (): void => {
      if (workers.every(({ hasEnded }) => hasEnded)) return;
      let worker = workers[turn++ % workers.length]!;
      while (worker.hasEnded) worker = workers[turn++ % workers.length]!;
      const answer = worker.thread.ask({ stream: { batchSize, dropLast, restart: !worker.hasBegun } });
      answer.catch(() => {}); // take() reports it
      worker.hasBegun = true;
      asked.push({ worker, answer });
    };
    const take = async (): Promise<Loaded<B> | undefined> => {
      for (let first = asked.shift(); first !== undefined; first = asked.shift()) {
        const loaded = await first.answer;
        if (loaded !== null) return loaded as Loaded<B>;
        first.worker.hasEnded = true;
        ask();
      }
      return undefined;
    };
    // Calls take turns: if a stream ends, its call gets the batch of the next request, and not of a later one.
    let last: Promise<unknown> = Promise.resolve();
    const next = (): Promise<Loaded<B> | undefined> => {
      ask();
      const loaded = last.then(take);
      last = loaded.catch(() => {});
      return loaded;
    };
    // A thread that has failed has no stream to close, and its error was reported at its batch.
    const close = async (): Promise<void> => {
      const left = workers.filter((each) => each.hasBegun && !each.hasEnded && !each.thread.hasFailed);
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
