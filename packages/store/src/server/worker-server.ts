// Serves a store from a worker thread, so that a training loop that never yields to the event loop does not block the
// other ranks.

import { Worker } from 'node:worker_threads';
import { checkNames } from '../check-options.ts';
import { StoreError, type StoreErrorCode, workerFailed } from '../errors.ts';
import { withResolvers } from './deadline.ts';
import type { ServeStoreOptions, StoreServer } from './tcp-server.ts';

/** Message of the worker: the store's address when it listens, or the error. */
export type WorkerReport =
  | { readonly host: string; readonly port: number }
  | { readonly code: StoreErrorCode; readonly message: string };

/**
 * Serves a store as serveStore() does, but from a new thread. The thread does not keep the process alive. Rejects with
 * ERR_STORE_LISTEN if it cannot listen.
 */
export async function serveStoreInWorker(
  options: Omit<ServeStoreOptions, 'onPlainClient'> = {},
): Promise<StoreServer> {
  checkNames('serveStoreInWorker', options, ['host', 'port', 'secret']);
  // The build puts the worker's entry next to this module.
  const entry = new URL('./server-worker.js', import.meta.url);
  const worker = new Worker(entry, { workerData: options, execArgv: [] });
  const { promise, resolve, reject } = withResolvers<WorkerReport>();
  worker.once('message', resolve);
  // Not removed: if the worker fails later, the clients notice it from their connections.
  worker.on('error', (cause) => reject(workerFailed(cause)));
  const exited = new Promise<void>((resolve) => {
    worker.once('exit', (exitCode) => {
      reject(workerFailed(`exit code ${exitCode}`));
      resolve();
    });
  });
  const report = await promise;
  if ('code' in report) throw new StoreError(report.code, report.message);
  worker.unref();
  return {
    host: report.host,
    port: report.port,
    close: async () => {
      worker.ref();
      worker.postMessage('close');
      await exited;
    },
  };
}
