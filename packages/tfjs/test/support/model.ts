// A small classifier and its data, for the tests of this package.
import * as tf from '@tensorflow/tfjs';

export const pixels = 12;
export const classes = 3;

/** Layers of the model: dense ones, with batch normalization between them if `normalizes`. */
export function model(seed: number, normalizes = false): tf.Sequential {
  const dense = (units: number, i: number, options: object) =>
    tf.layers.dense({
      units,
      kernelInitializer: tf.initializers.glorotUniform({ seed: seed * 10 + i }),
      ...options,
    });
  return tf.sequential({
    layers: [
      dense(8, 0, { inputShape: [pixels], activation: 'tanh' }),
      ...(normalizes ? [tf.layers.batchNormalization()] : []),
      dense(classes, 1, { activation: 'softmax' }),
    ],
  });
}

/** Returns `rows` samples that the model can learn, the same on all ranks. */
export function data(rows: number): { x: tf.Tensor2D; y: tf.Tensor1D } {
  const values = Float32Array.from({ length: rows * pixels }, (_, i) => Math.sin(i * i * 0.37 + i));
  const labels = Float32Array.from({ length: rows }, (_, row) => {
    const sums = [0, 1, 2].map((part) => {
      const from = row * pixels + part * 4;
      return values.subarray(from, from + 4).reduce((sum, value) => sum + value, 0);
    });
    return sums.indexOf(Math.max(...sums));
  });
  return { x: tf.tensor2d(values, [rows, pixels]), y: tf.tensor1d(labels) };
}

/** Returns all weights of a model, one after another. */
export function flat({ weights }: tf.LayersModel): number[] {
  return weights.flatMap((weight) => [...weight.read().dataSync()]);
}

export function largestDifference(a: readonly number[], b: readonly number[]): number {
  return a.reduce((largest, value, i) => Math.max(largest, Math.abs(value - b[i]!)), 0);
}
