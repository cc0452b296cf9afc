// Data sets that can also be created in worker threads: a function cannot be sent to a thread, but the URL of a module
// that makes the data set can.

import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import { badModule, moduleMissing, outOfRange } from '../errors.ts';
import { importHere } from '../loader/typescript.ts';
import type { WorkerInfo } from '../loader/worker-info.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Dataset, IterableDataset } from './dataset.ts';

/** Exports of a module that makes a data set. */
export interface DatasetModule<S = unknown, A = never> {
  /** Makes the data set. Called by loadDataset() in the calling thread, and once in each worker. */
  readonly default: (args: A) => MaybePromise<S>;
  /** Makes a batch, instead of `defaultCollate` or the data set's own `getBatch`. */
  readonly collate?: (samples: never[]) => unknown;
  /** Called in each worker before `default`. */
  readonly initWorker?: (info: WorkerInfo) => MaybePromise<void>;
}

/** The module of a data set, and the arguments of its default export. */
export interface Origin {
  readonly url: string;
  /** Arguments, passed by structured clone. */
  readonly args: unknown;
}

const origins = new WeakMap<object, Origin & Pick<DatasetModule, 'collate'>>();

/**
 * Resolves with the data set that the module's default export makes from `args`, for a DataLoader with
 * `numWorkers`. Pass a relative module as `new URL('./my-data.ts', import.meta.url)`.
 *
 * @example
 * ```ts
 * // photos.ts: export default (folder: string) => ({ length: 10, get: (index: number) => index });
 * const photos = await loadDataset(new URL('./photos.ts', import.meta.url), '/data/photos');
 * const loader = new DataLoader(photos, { batchSize: 32, numWorkers: 2 });
 * ```
 */
export async function loadDataset<
  S extends Dataset<unknown, unknown> | IterableDataset<unknown> = Dataset<unknown, unknown>,
>(module: URL | string, args?: unknown): Promise<S> {
  if ((typeof module !== 'string' && typeof module?.href !== 'string') || String(module) === '')
    throw outOfRange('loadDataset: module', 'the URL of a module, as a URL or a string', module);
  const origin: Origin = { url: String(module), args };
  const { dataset, collate } = await openModule(origin, (url) => importFound(url, importHere));
  origins.set(dataset, { ...origin, ...(collate && { collate }) });
  return dataset as S;
}

/** Imports a module. Throws ERR_DATA_MODULE if it does not exist, but passes errors of its own imports on unchanged. */
async function importFound(url: string, load: (url: string) => Promise<unknown>): Promise<unknown> {
  try {
    return await load(url);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ERR_MODULE_NOT_FOUND' && isMissing(url, message)) throw moduleMissing(url, error);
    throw error;
  }
}

/** Tells whether the module itself is missing, rather than one that it imports. `message` is that of the error. */
function isMissing(url: string, message: string): boolean {
  if (url.startsWith('file:')) return !existsSync(fileURLToPath(url));
  if (isAbsolute(url)) return !existsSync(url);
  // A relative text would refer to a file beside the files of this package, and any other text names a package.
  return url.startsWith('.') || message.startsWith(`Cannot find package '${url}'`);
}

/** Imports the module with `load`, which differs between threads, and makes its data set. Only workers pass `info`. */
export async function openModule(origin: Origin, load: (url: string) => Promise<unknown>, info?: WorkerInfo) {
  const module = exportsOf(await load(origin.url));
  if (typeof module.default !== 'function') throw badModule(origin.url, typeof module.default);
  if (isClass(module.default))
    throw badModule(origin.url, 'a class: export default (...args) => new It(...args)');
  if (info) await module.initWorker?.(info);
  const dataset = await module.default(origin.args as never);
  if (typeof dataset !== 'object' || dataset === null) throw badModule(origin.url, typeof dataset);
  return { dataset, collate: module.collate };
}

const isClass = (value: object): boolean => /^class\b/.test(Function.prototype.toString.call(value));

/** Returns a module's exports. TypeScript compiled to CommonJS has them within the default export. */
function exportsOf(module: unknown): Partial<DatasetModule> {
  const { default: own } = module as { readonly default?: unknown };
  const isWrapped =
    typeof own === 'object' && own !== null && 'default' in own && typeof own.default === 'function';
  return (isWrapped ? own : module) as Partial<DatasetModule>;
}

/** Returns the origin of a data set that loadDataset() made, and its module's collate; else undefined. */
export function originOf(dataset: object): (Origin & Pick<DatasetModule, 'collate'>) | undefined {
  return origins.get(dataset);
}
