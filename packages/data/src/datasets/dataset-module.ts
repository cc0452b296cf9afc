// A data set that worker threads can have too: functions cannot be sent to a thread, but the address of a module that
// makes the data set can.

import { badModule } from '../errors.ts';
import { importHere } from '../loader/typescript.ts';
import type { WorkerInfo } from '../loader/worker-info.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Dataset, IterableDataset } from './dataset.ts';

/** What such a module exports. */
export interface DatasetModule<S = unknown, A = never> {
  /** Makes the data set, in each worker and once in the thread that calls loadDataset(). */
  readonly default: (args: A) => MaybePromise<S>;
  /** Makes a batch in the place of `defaultCollate` or of the data set's own `getBatch`. */
  readonly collate?: (samples: never[]) => unknown;
  /** Called in each worker before `default`. */
  readonly initWorker?: (info: WorkerInfo) => MaybePromise<void>;
}

/** Where a data set comes from. */
export interface Origin {
  readonly url: string;
  /** By structured clone. */
  readonly args: unknown;
}

const origins = new WeakMap<object, Origin & Pick<DatasetModule, 'collate'>>();

/**
 * The data set that the default export of the module makes of `args`, for a DataLoader with `numWorkers`. A relative
 * module is given as `new URL('./my-data.ts', import.meta.url)`.
 */
export async function loadDataset<
  S extends Dataset<unknown, unknown> | IterableDataset<unknown> = Dataset<unknown, unknown>,
>(module: URL | string, args?: unknown): Promise<S> {
  const origin: Origin = { url: String(module), args };
  const { dataset, collate } = await openModule(origin, importHere);
  origins.set(dataset, { ...origin, ...(collate && { collate }) });
  return dataset as S;
}

/** The data set that a module makes. A worker, which has an `info`, can import what `load` here can. */
export async function openModule(origin: Origin, load: (url: string) => Promise<unknown>, info?: WorkerInfo) {
  const module = exportsOf(await load(origin.url));
  if (typeof module.default !== 'function') throw badModule(origin.url, typeof module.default);
  if (info) await module.initWorker?.(info);
  const dataset = await module.default(origin.args as never);
  if (typeof dataset !== 'object' || dataset === null) throw badModule(origin.url, typeof dataset);
  return { dataset, collate: module.collate };
}

/** What a module exports; of CommonJS, which TypeScript may be compiled to, what its only export holds. */
function exportsOf(module: unknown): Partial<DatasetModule> {
  const { default: own } = module as { readonly default?: unknown };
  const isWrapped =
    typeof own === 'object' && own !== null && 'default' in own && typeof own.default === 'function';
  return (isWrapped ? own : module) as Partial<DatasetModule>;
}

export function originOf(dataset: object): (Origin & Pick<DatasetModule, 'collate'>) | undefined {
  return origins.get(dataset);
}
