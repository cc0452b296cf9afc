// The number of threads of CPU kernels.
import { kernels } from '../backends/index.ts';
import { badOption, shown } from '../errors.ts';

/**
 * Returns the number of threads that run a kernel, including the caller's. Initially OMP_NUM_THREADS, or
 * without it the processor's cores divided by LOCAL_WORLD_SIZE, the number of ranks on this host. The
 * reference kernels use one.
 */
export const getNumThreads = (): number => kernels().numThreads();

/**
 * Sets the number of threads for the whole process, 1 to 256; the reference kernels always use one. Results
 * are bitwise equal for any number. Blocks until kernels that other JavaScript threads run have ended.
 */
export function setNumThreads(count: number): void {
  const isCount = Number.isInteger(count) && count >= 1 && count <= 256;
  if (!isCount) throw badOption('setNumThreads', 'an integer from 1 to 256', shown(count));
  kernels().setNumThreads(count);
}
