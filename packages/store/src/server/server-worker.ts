// The program of the thread of serveStoreInWorker(). The thread ends after any message to it.

import { parentPort, workerData } from 'node:worker_threads';
import { StoreError } from '../errors.ts';
import { serveStore } from './tcp-server.ts';
import type { WorkerReport } from './worker-server.ts';

const report = (message: WorkerReport) => parentPort!.postMessage(message);

try {
  const server = await serveStore(workerData);
  parentPort!.once('message', () => void server.close());
  report({ host: server.host, port: server.port });
} catch (error) {
  if (!StoreError.isInstance(error)) throw error;
  report({ code: error.code, message: error.message });
}
