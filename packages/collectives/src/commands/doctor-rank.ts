// Program of the two ranks of `ringwise doctor`: times a large and a small allReduce, and checks the large one.
import { measure } from '../../bench/measure.ts';
import type { Group } from '../group/group.ts';
import { init } from '../init/init.ts';
import type { Exchange } from './doctor.ts';

const largeCount = 2 ** 22;
const seconds = 0.2;

export default async function exchange(): Promise<Exchange> {
  // The doctor starts its ranks itself, but the mpi backend needs mpirun, so use the host backend instead.
  const backend = process.env.RINGWISE_BACKEND === 'mpi' ? { backend: 'host' } : {};
  await using group = await init({ timeoutMs: 30_000, ...backend });
  const large = new Float32Array(largeCount).fill(1);
  const wrong = await countWrong(group, large);
  const { p50Us } = await measure(group, (calls) => repeat(group, large, calls), seconds, true);
  const small = new Float32Array(1);
  const { p50Us: smallUs } = await measure(group, (calls) => repeat(group, small, calls), seconds, false);
  const largeBytes = large.byteLength;
  return { backend: group.backend, largeBytes, largeGBs: largeBytes / p50Us / 1000, smallUs, wrong };
}

/**
 * Runs one allReduce and returns how many elements are not the number of ranks. Fills the buffer with zeros,
 * so that further sums stay finite.
 */
async function countWrong(group: Group, buffer: Float32Array): Promise<number> {
  await group.allReduce(buffer);
  const wrong = buffer.reduce((count, value) => count + Number(value !== group.size), 0);
  buffer.fill(0);
  return wrong;
}

function repeat(group: Group, buffer: Float32Array, calls: number): void | Promise<void> {
  if (!group.supports.sync) return repeatAsync(group, buffer, calls);
  for (let i = 0; i < calls; i++) group.allReduceSync(buffer);
}

async function repeatAsync(group: Group, buffer: Float32Array, calls: number): Promise<void> {
  for (let i = 0; i < calls; i++) await group.allReduce(buffer);
}
