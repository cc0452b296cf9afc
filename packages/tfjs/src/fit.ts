// Replaces the training methods of a model, so that ranks compare how they train and average what they report.
import type { Group } from '@ringwise/collectives';
import type * as tf from '@tensorflow/tfjs';
import { differs, otherOptimizer } from './errors.ts';
import { averageOf, callbacksAround } from './metrics.ts';
import type { Parts } from './model.ts';
import { replaceMethods } from './replace.ts';

type Data = Parameters<tf.LayersModel['fit']>[0];

const trainingMethods = ['fit', 'fitDataset', 'trainOnBatch'] as const;

/** Replaces the methods of `model`, and returns a function that gives it its own back. */
export function replaceTraining(model: tf.LayersModel, parts: Parts, group: Group): () => void {
  const own = Object.fromEntries(
    trainingMethods.map((name) => [name, model[name].bind(model)]),
  ) as unknown as Pick<tf.LayersModel, (typeof trainingMethods)[number]>;
  const check = (verb: string) => {
    parts.checkInUse(verb);
    if (model.optimizer !== parts.optimizer) throw otherOptimizer(verb);
  };

  const fit: tf.LayersModel['fit'] = async (x, y, args = {}) => {
    check('fit');
    const { batchSize = 32, epochs = 1, initialEpoch = 0, validationData, validationSplit = 0 } = args;
    await compare('fit', group, parts, {
      ...compiledWith(model),
      samples: rowsOf(x),
      batchSize,
      epochs,
      initialEpoch,
      validationSplit,
      'validation samples': Array.isArray(validationData) ? rowsOf(validationData[0] as Data) : 0,
    });
    return own.fit(x, y, { ...args, callbacks: callbacksAround(group, args.callbacks, args.yieldEvery) });
  };

  const fitDataset: tf.LayersModel['fitDataset'] = async (dataset, args) => {
    check('fitDataset');
    const { epochs, batchesPerEpoch = 0, initialEpoch = 0, validationData } = args ?? {};
    const validates = validationData == null ? 'no' : 'yes';
    await compare('fitDataset', group, parts, {
      ...compiledWith(model),
      epochs,
      batchesPerEpoch,
      initialEpoch,
      validates,
    });
    return own.fitDataset(dataset, {
      ...args,
      callbacks: callbacksAround(group, args?.callbacks, args?.yieldEvery) as never,
    });
  };

  const trainOnBatch: tf.LayersModel['trainOnBatch'] = async (x, y) => {
    check('trainOnBatch');
    const report = await own.trainOnBatch(x, y);
    const averages = await averageOf(group, 'trainOnBatch', [report].flat(), { 'batch sizes': rowsOf(x) });
    return Array.isArray(report) ? averages : averages[0]!;
  };

  return replaceMethods(model, { fit, fitDataset, trainOnBatch });
}

/** Returns what the model was compiled with, beside the optimizer. Functions of the program are compared by name. */
function compiledWith(model: tf.LayersModel): object {
  const nameOf = (_: string, value: unknown): unknown =>
    typeof value === 'function' ? `function ${value.name}` : value;
  return { loss: JSON.parse(JSON.stringify(model.loss, nameOf) ?? 'null'), metrics: model.metricsNames };
}

/** Throws on all ranks if their settings differ. Collective. */
async function compare(verb: string, group: Group, { optimizer }: Parts, settings: object): Promise<void> {
  const mine = { ...settings, [optimizer.getClassName()]: optimizer.getConfig() };
  const all = await group.allGatherObject(JSON.stringify(mine), { label: verb });
  if (all.every((other) => other === all[0])) return;
  const next = 'Give all ranks the same; shard() cuts data into equal parts.';
  throw differs(verb, 'the settings', all, next);
}

/** Returns the number of samples in what fit() takes: a tensor, a list of tensors, or tensors by name. */
function rowsOf(data: Data): number {
  if (data == null || typeof data !== 'object') return 0;
  if ('shape' in data) return (data as tf.Tensor).shape[0] ?? 0;
  const [first] = Object.values(data) as tf.Tensor[];
  return first?.shape?.[0] ?? 0;
}
