// Gives all ranks the state of rank 0's optimizer, such as the moments of Adam after a model was resumed.
import type { Group } from '@ringwise/collectives';
import * as tf from '@tensorflow/tfjs';
import { noSavedState } from './errors.ts';

/** What rank 0 tells about its state. The first tensor is the number of steps. */
interface Description {
  readonly shapes: readonly (readonly number[])[];
  readonly names: readonly string[];
  readonly steps: number;
}

/** Collective. Does nothing if no rank's optimizer has taken a step. */
export async function broadcastState(optimizer: tf.Optimizer, group: Group): Promise<void> {
  if (group.size === 1) return;
  const steps = await group.allGatherObject(optimizer.iterations, { label: 'tfjs optimizer' });
  if (steps.every((each) => each === 0)) return;
  const state = await stateOf(optimizer);
  const {
    shapes,
    names,
    steps: iterations,
  } = await group.broadcastObject<Description>({
    shapes: state.slice(1).map(({ tensor }) => tensor.shape),
    names: state.slice(1).map(({ name }) => name),
    steps: optimizer.iterations,
  });
  const flat = new Float32Array(
    shapes.reduce((count, shape) => count + tf.util.sizeFromShape([...shape]), 0),
  );
  if (group.rank === 0) {
    let at = 0;
    for (const { tensor } of state.slice(1)) {
      flat.set(tensor.dataSync(), at);
      at += tensor.size;
    }
  }
  await group.broadcast(flat);
  // Rank 0 too: Adam computes its bias corrections from the number of steps, with other bits than step by step.
  const before = state.map(({ tensor }) => tensor);
  let at = 0;
  const tensors = shapes.map((shape, i) => {
    const size = tf.util.sizeFromShape([...shape]);
    at += size;
    return { name: names[i]!, tensor: tf.tensor(flat.slice(at - size, at), [...shape]) };
  });
  const iter = { name: 'iter', tensor: tf.scalar(iterations, 'int32') };
  await optimizer.setWeights([iter, ...tensors]);
  tf.dispose([before, iter.tensor]);
  tf.dispose(tensors.map(({ tensor }) => tensor));
}

async function stateOf(optimizer: tf.Optimizer): Promise<Awaited<ReturnType<tf.Optimizer['getWeights']>>> {
  try {
    return await optimizer.getWeights();
  } catch {
    throw noSavedState(optimizer.getClassName());
  }
}
