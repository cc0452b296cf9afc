// Averages what model.fit() reports, over all ranks, before callbacks of the program see it, and makes all ranks stop
// when one does.
import type { Group } from '@ringwise/collectives';
import * as tf from '@tensorflow/tfjs';
import { differs } from './errors.ts';

type Logs = Record<string, number | tf.Scalar>;

/** Members of a batch's logs that are no metrics. */
const notMetrics = ['batch', 'size'];

/**
 * Returns the averages of `values` over all ranks, with the same bits on all. `equal` must be equal on all ranks, and
 * `label` names the place in training, so that ranks that are elsewhere get an error. Collective.
 */
export async function averageOf(
  group: Group,
  label: string,
  values: readonly number[],
  equal: Readonly<Record<string, number>> = {},
): Promise<number[]> {
  const mine = Float64Array.of(...Object.values(equal), ...values);
  const all = new Float64Array(mine.length * group.size);
  await group.allGather(mine, all, { label });
  const column = (index: number) =>
    Array.from({ length: group.size }, (_, rank) => all[rank * mine.length + index]!);
  for (const [index, what] of Object.keys(equal).entries()) {
    const each = column(index);
    if (!each.every((value) => Object.is(value, each[0])))
      throw differs(
        label,
        what,
        each.map(String),
        'Give all ranks the same; shard() cuts data into equal parts.',
      );
  }
  const skip = Object.keys(equal).length;
  return values.map((_, i) => column(skip + i).reduce((sum, value) => sum + value, 0) / group.size);
}

/** Replaces the metrics in logs by their averages. */
async function averageLogs(
  group: Group,
  label: string,
  logs: Logs,
  equal: Readonly<Record<string, number>>,
): Promise<void> {
  const names = Object.keys(logs).filter((name) => !notMetrics.includes(name));
  const values = names.map((name) => {
    const value = logs[name]!;
    if (typeof value === 'number') return value;
    const [number] = value.dataSync();
    value.dispose();
    return number!;
  });
  const averages = await averageOf(group, label, values, equal);
  for (const [i, name] of names.entries()) logs[name] = averages[i]!;
}

/** Returns the learning rate if the optimizer has one, so that ranks can compare it. */
function rateOf(optimizer: tf.Optimizer): Record<string, number> {
  const { learningRate } = optimizer as unknown as { readonly learningRate?: unknown };
  return typeof learningRate === 'number' ? { 'learning rates': learningRate } : {};
}

/** Runs before the program's callbacks. */
class Averages extends tf.Callback {
  readonly #group: Group;

  constructor(group: Group) {
    super();
    this.#group = group;
  }

  override async onBatchEnd(_batch: number, logs: Logs): Promise<void> {
    const { optimizer } = this.model as tf.LayersModel;
    const equal = { 'batch sizes': Number(logs.size), ...rateOf(optimizer) };
    await averageLogs(this.#group, 'fit: end of a batch', logs, equal);
  }

  override async onEpochEnd(_epoch: number, logs: Logs): Promise<void> {
    await averageLogs(this.#group, 'fit: end of an epoch', logs, {});
  }
}

/** Runs after the program's callbacks: if one of them stops training on some rank, all ranks stop. */
class Stops extends tf.Callback {
  readonly #group: Group;

  constructor(group: Group) {
    super();
    this.#group = group;
  }

  async #agree(label: string): Promise<void> {
    const model = this.model as tf.LayersModel;
    const stop = Uint8Array.of(model.stopTraining ? 1 : 0);
    await this.#group.allReduce(stop, { op: 'max', label });
    if (stop[0] === 1) model.stopTraining = true;
  }

  override async onBatchEnd(): Promise<void> {
    await this.#agree('fit: whether to stop after a batch');
  }

  override async onEpochEnd(): Promise<void> {
    await this.#agree('fit: whether to stop after an epoch');
  }
}

type FitCallbacks = tf.ModelFitArgs['callbacks'];

/** Returns the callbacks for model.fit(): those of the program, between ours. */
export function callbacksAround(
  group: Group,
  callbacks: FitCallbacks,
  yieldEvery: tf.ModelFitArgs['yieldEvery'],
): tf.Callback[] {
  const given = [callbacks ?? {}].flat();
  // As TensorFlow.js does: either all are objects of its classes, or all are lists of functions.
  const own = given.map((each) =>
    'setModel' in each
      ? (each as tf.Callback)
      : new tf.CustomCallback(each as tf.CustomCallbackArgs, yieldEvery),
  );
  return [new Averages(group), ...(own as tf.Callback[]), new Stops(group)];
}
