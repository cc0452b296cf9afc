// How many threads compute.
import { kernels } from '../backends/index.ts';
import { badOption, shown } from '../errors.ts';

/**
 * Threads that share a kernel, the caller's included. At first the number in OMP_NUM_THREADS; without it, the
 * processor's cores divided by LOCAL_WORLD_SIZE, the number of ranks on this host. The reference kernels have one.
 */
export const getNumThreads = (): number => kernels().numThreads();

/**
 * Sets it for the whole process, 1 to 256; the reference kernels stay with one. Results are bitwise equal for
 * any number of threads. Blocks until a kernel that another JavaScript thread runs has ended.
 */
export function setNumThreads(count: number): void {
  const isCount = Number.isInteger(count) && count >= 1 && count <= 256;
  if (!isCount) throw badOption('setNumThreads', 'an integer from 1 to 256', shown(count));
  kernels().setNumThreads(count);
}
