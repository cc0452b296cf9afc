// The norm of gradients that are spread over ranks. Gradients that ddp has averaged are the same everywhere: for these the
// optimizer's own clipping does.
import { asBuffer, type BufferLike, elementsOf, type Group } from '@ringwise/collectives';
import { checkGroup, checkPositive } from './check.ts';
import { gradientOutOfReach } from './errors.ts';
import { divide } from './reducer/scale.ts';
import { runAwaiting } from './reducer/works.ts';

/** A gradient in memory that JavaScript cannot reach, with what is done to it there; a tensor has both. */
interface DeviceGradient {
  readonly norm?: () => { readonly item: () => number; readonly dispose: () => void };
  readonly div_?: (divisor: number) => unknown;
}

/** Where a gradient lies, and what clipping does there. */
interface Clippable {
  /** The sum of its squares. Waits for its device. */
  readonly squares: () => number;
  readonly divide: (divisor: number) => void;
}

/**
 * Scales the gradients of all ranks together to a Euclidean norm of at most `maxNorm`, and returns what it was. Collective:
 * every rank passes the gradients that only it has (its shard), also none. float32 and float64 in host memory; tensors on a
 * device, where all of it is computed, but for one number each.
 */
export async function clipShardedGradients(
  shard: Iterable<BufferLike>,
  maxNorm: number,
  group: Group,
): Promise<number> {
  checkPositive('clipShardedGradients: maxNorm', maxNorm);
  checkGroup('clipShardedGradients', group);
  const gradients = [...shard].map(clippable);
  const sum = Float64Array.of(0);
  for (const { squares } of gradients) sum[0]! += squares();
  await runAwaiting([group.allReduce(sum)]);
  const norm = Math.sqrt(sum[0]!);
  if (norm > maxNorm) for (const gradient of gradients) gradient.divide(norm / maxNorm);
  return norm;
}

function clippable(gradient: BufferLike): Clippable {
  const view = asBuffer(gradient, 'clipShardedGradients');
  if (view.host === null) return onDevice(gradient as DeviceGradient);
  const elements = elementsOf(view) as Float32Array | Float64Array;
  const squares = () => {
    let sum = 0;
    for (const value of elements) sum += value * value;
    return sum;
  };
  return { squares, divide: (divisor) => divide(view, divisor) };
}

function onDevice(gradient: DeviceGradient): Clippable {
  if (gradient.norm === undefined || gradient.div_ === undefined) throw gradientOutOfReach();
  const norm = gradient.norm(); // computed while others are: nobody waits yet
  const squares = () => {
    const value = norm.item();
    norm.dispose();
    return value ** 2;
  };
  return { squares, divide: (divisor) => void gradient.div_!(divisor) };
}
