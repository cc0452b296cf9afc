// The complete adapter between TensorFlow.js and ringwise.
import type { Group } from '@ringwise/collectives';
import * as tf from '@tensorflow/tfjs';

/**
 * Makes a compiled model data-parallel: gives all ranks rank 0's weights, and replaces the optimizer's
 * applyGradients() so that every step, also inside model.fit(), applies the average of all ranks' gradients.
 * Collective. The calls to the group block, because model.fit() applies gradients without awaiting. All ranks must
 * take the same number of steps with batches of the same size.
 */
export function dataParallel(model: tf.LayersModel, group: Group): void {
  tf.tidy(() => {
    const weights = model.getWeights();
    const flat = flatten(weights);
    group.broadcastSync(flat);
    model.setWeights(unflatten(flat, weights));
  });
  const { optimizer } = model;
  const apply = optimizer.applyGradients.bind(optimizer);
  optimizer.applyGradients = (gradients) =>
    tf.tidy(() => {
      // Match gradients by position, not by name: two models of one process have different names for the same layer.
      const named = Array.isArray(gradients)
        ? gradients
        : Object.entries(gradients).map(([name, tensor]) => ({ name, tensor }));
      const tensors = named.map(({ tensor }) => tensor);
      const flat = flatten(tensors);
      group.allReduceSync(flat, { op: 'avg' });
      apply(unflatten(flat, tensors).map((tensor, i) => ({ name: named[i]!.name, tensor })));
    });
}

export function flatten(tensors: readonly tf.Tensor[]): Float32Array {
  const flat = new Float32Array(tensors.reduce((count, { size }) => count + size, 0));
  let at = 0;
  for (const tensor of tensors) {
    flat.set(tensor.dataSync(), at);
    at += tensor.size;
  }
  return flat;
}

/** Returns tensors with the shapes of `like`. Copies each, because the CPU backend of TensorFlow.js keeps the array. */
function unflatten(flat: Float32Array, like: readonly tf.Tensor[]): tf.Tensor[] {
  let at = 0;
  return like.map(({ shape, size }) => {
    at += size;
    return tf.tensor(flat.slice(at - size, at), shape);
  });
}
