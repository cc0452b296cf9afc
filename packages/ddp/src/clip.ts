// The norm of gradients that are spread over ranks. Gradients that ddp has averaged are the same everywhere: for these the
// optimizer's own clipping does.
import { asBuffer, type BufferLike, elementsOf, type Group } from '@ringwise/collectives';
import { invalidArgument } from './errors.ts';
import { divide } from './scale.ts';

/**
 * Scales the gradients of all ranks together to a Euclidean norm of at most `maxNorm`, and returns what it was. Collective:
 * every rank passes the gradients that only it has (its shard), also none. float32 and float64.
 */
export async function clipShardedGradients(
  shard: Iterable<BufferLike>,
  maxNorm: number,
  group: Group,
): Promise<number> {
  if (!(maxNorm > 0))
    throw invalidArgument('clipShardedGradients: maxNorm', 'a positive number', String(maxNorm));
  const views = [...shard].map((gradient) => asBuffer(gradient, 'clipShardedGradients'));
  let own = 0;
  for (const view of views) {
    for (const value of elementsOf(view) as Float32Array | Float64Array) own += value * value;
  }
  const sum = Float64Array.of(own);
  await group.allReduce(sum);
  const norm = Math.sqrt(sum[0]!);
  if (norm > maxNorm) for (const view of views) divide(view, norm / maxNorm);
  return norm;
}
