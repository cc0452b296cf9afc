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
import { checkGroup, checkOptions, checkPositive, fromPyTorch, shown } from './check.ts';
import { gradientOutOfReach, invalidArgument } from './errors.ts';
import { divide } from './reducer/scale.ts';
import { runAwaiting } from './reducer/works.ts';

/** The methods for a gradient in memory that JavaScript cannot access; tensors have both. */
interface DeviceGradient {
  readonly norm?: (
    dims: undefined,
    options: { readonly p: number },
  ) => { readonly item: () => number; readonly dispose: () => void };
  readonly div_?: (divisor: number) => unknown;
}

/** A gradient as clipping uses it. */
interface Clippable {
  /** Returns the norm. Waits for the gradient's device. */
  readonly norm: () => number;
  readonly divide: (divisor: number) => void;
}

/** Options of clipShardedGradients(). */
export interface ClipShardedOptions {
  /** Order of the norm, above 0. Default 2, the Euclidean norm; Infinity is the largest magnitude. */
  readonly normType?: number;
}

const optionNames = { known: ['normType'], renamed: fromPyTorch({ norm_type: 'normType' }) };

/**
 * Clips gradients that are sharded over the ranks: multiplies all of them by one factor, at most 1, so that their norm,
 * computed as that of one long vector, is at most `maxNorm`. Resolves with the norm before clipping; if it is NaN, all
 * gradients become NaN. Collective: every rank passes the gradients of its own shard, possibly none, and the same
 * options. Accepts floats of any width in host memory, and tensors on a device. On a device only one number per
 * gradient is copied to the host.
 */
export async function clipShardedGradients(
  shard: Iterable<BufferLike>,
  maxNorm: number,
  group: Group,
  options: ClipShardedOptions = {},
): Promise<number> {
  if (typeof shard !== 'object' || shard === null || !(Symbol.iterator in shard))
    throw invalidArgument('clipShardedGradients: shard', 'a list of gradients', shown(shard));
  checkPositive('clipShardedGradients: maxNorm', maxNorm);
  checkGroup('clipShardedGradients', group);
  checkOptions('clipShardedGradients', options, optionNames);
  const { normType = 2 } = options;
  checkPositive('clipShardedGradients: normType', normType);
  const gradients = [...shard].map((gradient) => clippable(gradient, normType));
  const isMax = normType === Infinity;
  const sum = Float64Array.of(0);
  for (const { norm } of gradients) sum[0] = isMax ? Math.max(sum[0]!, norm()) : sum[0]! + norm() ** normType;
  await runAwaiting([group.allReduce(sum, { op: isMax ? 'max' : 'sum', label: `norm ${normType}` })]);
  const norm = isMax ? sum[0]! : sum[0]! ** (1 / normType);
  // The same formula as clip_grad_norm_(). A NaN norm reaches the gradients of every rank, so that all ranks notice it.
  const divisor = (norm + 1e-6) / maxNorm;
  if (!(divisor <= 1)) for (const gradient of gradients) gradient.divide(divisor);
  return norm;
}

function clippable(gradient: BufferLike, normType: number): Clippable {
  const view = asBuffer(gradient, 'clipShardedGradients');
  if (view.host === null) return onDevice(gradient as DeviceGradient, normType);
  const { dtype } = view;
  const isFloat = dtype === 'float32' || dtype === 'float64' || isNarrowFloat(dtype);
  if (!isFloat) throw invalidArgument('clipShardedGradients: gradient', 'floats', dtype);
  const elements = elementsOf(view) as Float32Array | Float64Array | Uint16Array | Uint8Array;
  const decode = isNarrowFloat(dtype) ? narrowFloats[dtype].from : (element: number) => element;
  return { norm: () => normOf(elements, normType, decode), divide: (divisor) => divide(view, divisor) };
}

/** Returns the norm of the values. `decode` returns the number for the bits of an element. */
function normOf(elements: Iterable<number>, normType: number, decode: (element: number) => number): number {
  let sum = 0;
  if (normType === Infinity) {
    for (const element of elements) sum = Math.max(sum, Math.abs(decode(element)));
    return sum;
  }
  if (normType === 2) for (const element of elements) sum += decode(element) ** 2;
  else for (const element of elements) sum += Math.abs(decode(element)) ** normType;
  return sum ** (1 / normType);
}

function onDevice(gradient: DeviceGradient, normType: number): Clippable {
  if (gradient.norm === undefined || gradient.div_ === undefined) throw gradientOutOfReach();
  const pending = gradient.norm(undefined, { p: normType }); // started here for all gradients, awaited later in norm()
  const norm = () => {
    const value = pending.item();
    pending.dispose();
    return value;
  };
  return { norm, divide: (divisor) => void gradient.div_!(divisor) };
}
