import { workerData } from 'node:worker_threads';

/** Identifies one of a DataLoader's workers. */
export interface WorkerInfo {
  /** Number of this worker, from 0 on. */
  readonly id: number;
  /** Number of workers of the loader. */
  readonly count: number;
  /** The loader's workerSeed + id: the same in every run, and different in each worker of a loader. */
  readonly seed: number;
}

/** Member of workerData that holds a worker's data. All copies of this package use this name. */
export const workerKey = 'ringwise.data.worker';

/** Returns the info of the calling thread, or null outside of a DataLoader's workers. */
export function workerInfo(): WorkerInfo | null {
  const data: unknown = workerData;
  if (typeof data !== 'object' || data === null || !(workerKey in data)) return null;
  return (data as Record<typeof workerKey, { readonly info: WorkerInfo }>)[workerKey].info;
}
