// Positions and weights that an op computes on the host, and reads of slices at such positions.

import type { Storage } from '../../core/memory/storage.ts';
import { tableOn } from '../../core/memory/tables.ts';
import { created, type Tensor } from '../../core/tensor.ts';
import type { Device } from '../../device/device.ts';
import { contiguous } from '../elementwise/convert.ts';
import { sizesOf } from '../indexing/lookup.ts';
import { lookedUp } from '../indexing/moves.ts';

/** Returns memory with integers from 0 to 2^31 − 1, in int64. The caller releases it, and only reads it. */
export function storedPositions(positions: readonly number[], device: Device): Storage {
  const host = new BigInt64Array(positions.length);
  // Written as pairs of 32 bits, low first, so that no BigInt is made.
  const words = new Int32Array(host.buffer);
  for (const [i, position] of positions.entries()) words[2 * i] = position;
  return tableOn(device, 'int64', host);
}

/** Returns the slices of `a` along `dim` at `positions`, which are indices of the dimension. Gradients are summed. */
export function takenAt(name: string, a: Tensor, dim: number, positions: readonly number[]): Tensor {
  const index = created(storedPositions(positions, a.device), [positions.length]);
  const dense = contiguous(a);
  const sizes = sizesOf(a.shape, dim, positions.length, false);
  const out = lookedUp(name, dense, index, a.shape.with(dim, positions.length), sizes);
  index.dispose();
  if (dense !== a) dense.dispose();
  return out;
}
