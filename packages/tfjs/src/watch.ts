// Tells when the gradient of a weight is final, while TensorFlow.js still computes the gradients of earlier layers.
// TensorFlow.js returns all gradients at once. But it runs backward through the operations in reverse order, so an
// operation that copies a weight before its first use gets the weight's whole gradient when all its uses are done.
import * as tf from '@tensorflow/tfjs';

/** The member of a layer's weight in which it keeps its variable. */
interface Handle {
  val: tf.Tensor;
}

/**
 * Runs `differentiate`, which must call the loss that it is given once and then compute its gradients. Calls `onFinal`
 * with the index of a weight and its gradient when that is final.
 */
export function watchGradients<T>(
  handles: readonly object[],
  onFinal: (index: number, gradient: tf.Tensor) => void,
  loss: () => tf.Scalar,
  differentiate: (loss: () => tf.Scalar) => T,
): T {
  const copies: tf.Tensor[] = [];
  let isBackward = false;
  // Inside the loss, gradients of gradients may run through the copies too.
  const report = (index: number, gradient: tf.Tensor) => {
    if (isBackward) onFinal(index, gradient);
    return gradient;
  };
  const copyOf = (index: number, variable: tf.Tensor): tf.Tensor => {
    const copied = tf.customGrad((x) => ({
      value: (x as tf.Tensor).clone(),
      gradFunc: (gradient) => report(index, gradient as tf.Tensor),
    }));
    // Kept, because the first use may be in a scope that ends before the second.
    const copy = tf.keep(copied(variable));
    copies.push(copy);
    return copy;
  };
  try {
    return differentiate(() => {
      const restore = handles.map((handle, index) => standIn(handle as Handle, (val) => copyOf(index, val)));
      try {
        return loss();
      } finally {
        for (const undo of restore) undo();
        isBackward = true;
      }
    });
  } finally {
    tf.dispose(copies);
  }
}

/** Replaces a weight's variable by what `make` returns when it is first read. Returns a function that undoes this. */
function standIn(handle: Handle, make: (val: tf.Tensor) => tf.Tensor): () => void {
  const { val } = handle;
  let made: tf.Tensor | null = null;
  const common = { configurable: true, enumerable: true };
  const get = () => {
    made ??= make(val);
    return made;
  };
  Object.defineProperty(handle, 'val', { ...common, get });
  return () => Object.defineProperty(handle, 'val', { ...common, writable: true, value: val });
}
