// The program of a DataLoader's worker thread. It makes the data set, then starts tasks in the order of their arrival;
// several run at a time if the data set is asynchronous.

import { type MessagePort, workerData } from 'node:worker_threads';
import type { Dataset, IterableDataset } from '../datasets/dataset.ts';
import { type Origin, openModule } from '../datasets/dataset-module.ts';
import { inBatches, inBatchesAsync } from '../samplers/in-batches.ts';
import { asDataset, batchLoader, type Collate, ofOne } from './batch-loader.ts';
import { defaultCollate } from './collate.ts';
import { portable } from './portable.ts';
import { packed } from './sent-error.ts';
import { register } from './typescript.ts';
import { type WorkerInfo, workerKey } from './worker-info.ts';
import type { Answer, StreamBatching, Task } from './worker-thread.ts';

interface Start {
  readonly origin: Origin;
  /** Modules that enable this thread to import TypeScript: see registrarsFor(). */
  readonly registrars: readonly string[];
  readonly info: WorkerInfo;
  readonly port: MessagePort;
  /** Whether the loader yields single samples. */
  readonly isSingle: boolean;
}

type Make = Collate<unknown, unknown>;
type Source = Dataset<unknown, unknown> | IterableDataset<unknown>;

const { origin, registrars, info, port, isSingle } = (workerData as Record<typeof workerKey, Start>)[
  workerKey
];
const post = (answer: Answer, moved: ArrayBuffer[] = []) => port.postMessage(answer, moved);

// Tasks may arrive before the data set is ready, so each awaits this promise.
const opened = openModule(origin, load, info).then(({ dataset, collate }) => {
  const make = isSingle ? ofOne<unknown, unknown>(collate) : (collate as Make | undefined);
  return { source: dataset as Source, collate: make };
});
opened.catch(() => {}); // every task reports it

async function load(url: string): Promise<unknown> {
  await register(registrars);
  return await import(url);
}

// The samples of each batch of the stream's current pass; null between passes.
let groups: AsyncGenerator<unknown[]> | Generator<unknown[]> | null = null;

async function nextGroup(source: Source, { batchSize, dropLast, restart }: StreamBatching) {
  if (restart || groups === null) {
    groups =
      Symbol.asyncIterator in source
        ? inBatchesAsync(source, batchSize, dropLast)
        : inBatches(source as Iterable<unknown>, batchSize, dropLast);
  }
  const step = await groups.next();
  return step.done ? null : step.value;
}

/** Ends a pass that the loop has left early, so that `finally` blocks of the stream run and close its files. */
async function closeStream(): Promise<void> {
  const left = groups;
  groups = null;
  await left?.return(undefined);
}

async function run(task: Task): Promise<{ readonly batch: unknown; readonly count: number } | null> {
  const { source, collate } = await opened;
  if ('close' in task) {
    await closeStream();
    return null;
  }
  if ('indices' in task) {
    const batch = await batchLoader(asDataset(source)!, collate)(task.indices);
    return { batch, count: task.indices.length };
  }
  const group = await nextGroup(source, task.stream);
  if (group === null) return null;
  return { batch: await (collate ?? (defaultCollate as Make))(group), count: group.length };
}

async function answer(task: Task): Promise<void> {
  const { id } = task;
  try {
    const loaded = await run(task);
    if (loaded === null) return post({ id, loaded: null });
    // A single sample may be memory that the data set still uses.
    const { batch, moved } = portable(loaded.batch, !isSingle);
    post({ id, loaded: { batch, count: loaded.count } }, moved);
  } catch (error) {
    try {
      post({ id, ...packed(error instanceof DOMException ? notSent(error) : error) });
    } catch {
      post({ id, error: new Error(String(error)) }); // `error` cannot be cloned for another thread
    }
  }
}

/** Returns the error for a batch that postMessage() refuses, whose own error would arrive as an empty object. */
const notSent = ({ message }: DOMException): Error =>
  new TypeError(`a batch cannot be sent to the program's thread: ${message} Expected data, no functions.`);

port.on('message', (task: Task) => void answer(task));
