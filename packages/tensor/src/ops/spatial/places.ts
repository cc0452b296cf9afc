// Positions and weights that an op computes on the host, and reads of slices at such positions.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { zeros } from '../../core/creation.ts';
import { allocate, type Storage } from '../../core/memory/storage.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import type { Device } from '../../device/device.ts';
import { contiguous } from '../elementwise/convert.ts';
import { sizesOf } from '../indexing/lookup.ts';
import { written } from '../indexing/moves.ts';

/** Writes integers from 0 to 2^31 − 1 to memory of int64. The caller releases it. */
export function storedPlaces(places: readonly number[], device: Device): Storage {
  const storage = allocate('int64', places.length, device);
  const host = new BigInt64Array(places.length);
  // Written as pairs of 32 bits, low first, so that no BigInt is made.
  const words = new Int32Array(host.buffer);
  for (const [i, place] of places.entries()) words[2 * i] = place;
  if (places.length > 0) kernels().write(storage.memory, 0, host);
  return storage;
}

/** Returns the slices of `a` along `dim` at `places`, which lie in the dimension. Gradients are added up. */
export function takenAt(name: string, a: Tensor, dim: number, places: readonly number[]): Tensor {
  const dense = contiguous(a);
  const index = storedPlaces(places, a.device);
  const sizes = sizesOf(a.shape, dim, places.length, false);
  const out = empty(a.dtype, a.shape.with(dim, places.length), a.device);
  if (out.count > 0) kernels().lookup({ out: out.strided, a: dense.strided, index: index.dense }, sizes);
  if (isRecording(dense)) {
    const target = dense.target!;
    const { shape } = a;
    record(name, out, [target], [index], (grad, graph) => {
      if (graph) {
        const own = graphOf(graph);
        const { dtype, device } = own.grad;
        const ready = own.saved(index.dense, [places.length], null);
        own.send(
          target,
          written(name, 'add', zeros(shape, { dtype, device }), contiguous(own.grad), ready, shape, sizes),
        );
        return;
      }
      const into = target.open();
      if (!target.isFilled) kernels().copy([target.count], into, 0);
      if (grad.memory.count > 0)
        kernels().scatter({ out: into, a: grad.dense, index: index.dense }, { ...sizes, op: 'add' });
      target.close();
    });
  }
  index.release();
  if (dense !== a) dense.dispose();
  return out;
}
