import { workerData } from 'node:worker_threads';

/** Which of a DataLoader's workers a thread is. */
export interface WorkerInfo {
  readonly id: number;
  /** Workers of the loader. */
  readonly count: number;
  /** The loader's workerSeed + id: equal in every run, different in every worker. */
  readonly seed: number;
}

/** The key under which a worker finds its data, whichever copy of this package asks. */
export const workerKey = 'ringwise.data.worker';

/** Of the calling thread; null outside of a DataLoader's workers. */
export function workerInfo(): WorkerInfo | null {
  const data: unknown = workerData;
  if (typeof data !== 'object' || data === null || !(workerKey in data)) return null;
  return (data as Record<typeof workerKey, { readonly info: WorkerInfo }>)[workerKey].info;
}
