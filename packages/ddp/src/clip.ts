// Clipping of gradients that are sharded over ranks. Gradients that ddp has averaged are equal on all ranks,
// so the optimizer's own clipping is enough for them.
import {
  asBuffer,
  type BufferLike,
  elementsOf,
  type Group,
  isNarrowFloat,
  narrowFloats,
} from '@ringwise/collectives';
import { checkGroup, checkPositive, shown } from './check.ts';
import { gradientOutOfReach, invalidArgument } from './errors.ts';
import { divide } from './reducer/scale.ts';
import { runAwaiting } from './reducer/works.ts';

/** The methods for a gradient in memory that JavaScript cannot access; tensors have both. */
interface DeviceGradient {
  readonly norm?: () => { readonly item: () => number; readonly dispose: () => void };
  readonly div_?: (divisor: number) => unknown;
}

/** A gradient, and what clipping does with it. */
interface Clippable {
  /** Returns the sum of the squared elements. Waits for the gradient's device. */
  readonly squares: () => number;
  readonly divide: (divisor: number) => void;
}

/**
 * Scales the gradients of all ranks together to a Euclidean norm of at most `maxNorm`. Resolves with the norm
 * before scaling; a norm that is NaN makes all gradients NaN. Collective: every rank passes the gradients that
 * only it has (its shard), possibly none. Accepts floats of any width in host memory, and tensors on a device,
 * where everything but one number per gradient is computed on the device.
 */
export async function clipShardedGradients(
  shard: Iterable<BufferLike>,
  maxNorm: number,
  group: Group,
): Promise<number> {
  if (typeof shard !== 'object' || shard === null || !(Symbol.iterator in shard))
    throw invalidArgument('clipShardedGradients: shard', 'a list of gradients', shown(shard));
  checkPositive('clipShardedGradients: maxNorm', maxNorm);
  checkGroup('clipShardedGradients', group);
  const gradients = [...shard].map(clippable);
  const sum = Float64Array.of(0);
  for (const { squares } of gradients) sum[0]! += squares();
  await runAwaiting([group.allReduce(sum)]);
  const norm = Math.sqrt(sum[0]!);
  // A norm that is NaN reaches the gradients of every rank, so that all notice it.
  if (!(norm <= maxNorm)) for (const gradient of gradients) gradient.divide(norm / maxNorm);
  return norm;
}

function clippable(gradient: BufferLike): Clippable {
  const view = asBuffer(gradient, 'clipShardedGradients');
  if (view.host === null) return onDevice(gradient as DeviceGradient);
  const { dtype } = view;
  const isFloat = dtype === 'float32' || dtype === 'float64' || isNarrowFloat(dtype);
  if (!isFloat) throw invalidArgument('clipShardedGradients: gradient', 'floats', dtype);
  const elements = elementsOf(view) as Float32Array | Float64Array | Uint16Array | Uint8Array;
  const squares = () =>
    isNarrowFloat(dtype) ? sumOfSquares(elements, narrowFloats[dtype].from) : sumOfSquares(elements);
  return { squares, divide: (divisor) => divide(view, divisor) };
}

/** `from` returns the number for the bits of an element. */
function sumOfSquares(elements: Iterable<number>, from = (element: number) => element): number {
  let sum = 0;
  for (const element of elements) sum += from(element) ** 2;
  return sum;
}

function onDevice(gradient: DeviceGradient): Clippable {
  if (gradient.norm === undefined || gradient.div_ === undefined) throw gradientOutOfReach();
  const norm = gradient.norm(); // started here for all gradients, awaited later in squares()
  const squares = () => {
    const value = norm.item();
    norm.dispose();
    return value ** 2;
  };
  return { squares, divide: (divisor) => void gradient.div_!(divisor) };
}
