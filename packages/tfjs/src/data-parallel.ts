// dataParallel(): the one line before model.fit().
import type { Group } from '@ringwise/collectives';
import {
  assertInSync,
  type DdpOptions,
  type DistributedDataParallel,
  ddp,
  type StepStatistics,
} from '@ringwise/ddp';
import type * as tf from '@tensorflow/tfjs';
import { Averaging } from './averaging.ts';
import { cannotBlock, closed, differs, invalidArgument, refused, wrappedAlready } from './errors.ts';
import { replaceTraining } from './fit.ts';
import { averageOf } from './metrics.ts';
import { type OptimizedVariables, Parts } from './model.ts';
import { broadcastState } from './optimizer-state.ts';

/** Optimizers that are data-parallel, over all copies of this package in the thread. */
const slots = globalThis as { [key: symbol]: WeakSet<object> | undefined };
const wrappedSymbol = Symbol.for('ringwise.tfjs.wrapped');
slots[wrappedSymbol] ??= new WeakSet();
const wrapped: WeakSet<object> = slots[wrappedSymbol];

/** What dataParallel() returns. The model itself is used as before. */
export class DataParallel {
  /** Group over whose ranks gradients and metrics are averaged. */
  readonly group: Group;
  readonly #parts: Parts;
  readonly #ddp: DistributedDataParallel<Parts>;
  readonly #undo: readonly (() => void)[];
  #isClosed = false;

  /** Use dataParallel(). @internal */
  constructor(parts: Parts, inner: DistributedDataParallel<Parts>, undo: readonly (() => void)[]) {
    this.group = inner.group;
    this.#parts = parts;
    this.#ddp = inner;
    this.#undo = undo;
  }

  /**
   * Checks that all ranks have bitwise equal weights, and throws ERR_DDP_NOT_IN_SYNC on all ranks otherwise.
   * Collective. Reads all weights, so call it now and then, not in every step.
   */
  async assertInSync(): Promise<void> {
    this.#checkOpen('assertInSync');
    this.#parts.checkInUse('assertInSync');
    for (const each of this.#parts.all) each.load();
    await assertInSync(this.#parts, this.group);
    for (const each of [...this.#parts.trained, ...this.#parts.frozen]) each.drop();
  }

  /**
   * Returns the averages of numbers over all ranks, with the same bits on all ranks, such as losses of a loop of one's
   * own. Collective.
   */
  average(values: readonly number[]): Promise<number[]> {
    this.#checkOpen('average');
    return averageOf(this.group, 'average', values);
  }

  /** Returns times and bytes of the last averaged step on this rank, or null. Not collective. */
  statistics(): StepStatistics | null {
    return this.#ddp.statistics();
  }

  /**
   * Stops averaging: gives the model and the optimizer their own methods back. The model can be made data-parallel
   * again. Not collective. Idempotent.
   */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const undo of this.#undo) undo();
    this.#ddp.close();
    wrapped.delete(this.#parts.optimizer);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #checkOpen(verb: string): void {
    if (this.#isClosed) throw closed(verb);
  }
}

/**
 * Makes a compiled model of TensorFlow.js data-parallel. From then on every step of `model.fit()`, `fitDataset()`,
 * `trainOnBatch()` and `optimizer.minimize()` averages the gradients of all ranks, while TensorFlow.js still computes
 * those of earlier layers, and what `fit()` reports to callbacks and `History` is an average too. For a training loop
 * without a model, pass `{ optimizer, variables }`.
 *
 * Collective; does not block. Compares models and optimizers between ranks, and gives all ranks rank 0's weights and
 * the state of its optimizer. Later calls block until gradients are averaged, because TensorFlow.js does not await
 * them. The options are those of `ddp()`. Throws on all ranks if it throws on one: ERR_TFJS_INVALID, ERR_TFJS_MISMATCH,
 * or an error of `ddp()`.
 *
 * @example
 * ```ts
 * import { dataParallel } from '@ringwise/tfjs';
 * import * as tf from '@tensorflow/tfjs';
 *
 * const net = tf.sequential({ layers: [tf.layers.dense({ units: 1, inputShape: [2] })] });
 * net.compile({ optimizer: 'adam', loss: 'meanSquaredError' });
 * await dataParallel(net, { group });
 * await net.fit(tf.ones([64, 2]), tf.ones([64, 1]), { epochs: 5, batchSize: 32 });
 * ```
 */
export async function dataParallel(
  source: tf.LayersModel | OptimizedVariables,
  options: DdpOptions,
): Promise<DataParallel> {
  const { group } = (options ?? {}) as Partial<DdpOptions>;
  if (typeof group?.allGatherObject !== 'function')
    throw invalidArgument(
      'dataParallel',
      'dataParallel(model, { group })',
      (group as unknown) instanceof Promise ? 'a promise as group: await it, as in await init()' : 'no group',
    );
  if (!group.supports.sync) throw cannotBlock(group.backend);
  const parts = await agreedParts(source, group);
  const { optimizer } = parts;
  wrapped.add(optimizer);
  let inner: DistributedDataParallel<Parts> | null = null;
  const undo: (() => void)[] = [];
  try {
    inner = await ddp(parts, options);
    for (const each of [...parts.trained, ...parts.frozen]) {
      each.store();
      each.drop();
    }
    for (const state of parts.states) state.store();
    await broadcastState(optimizer, group);
    const averaging = new Averaging(parts, group.size === 1);
    undo.push(() => averaging.undo());
    if ('layers' in source) undo.push(replaceTraining(source, parts, group));
    return new DataParallel(parts, inner, undo);
  } catch (error) {
    for (const each of undo) each();
    inner?.close();
    wrapped.delete(optimizer);
    throw error;
  }
}

/** What a rank tells the others: its optimizer, or the error that it would throw. */
interface Told {
  readonly optimizer?: string;
  readonly error?: string;
}

/** Returns the parts of the model. All ranks throw if one cannot use its model, or if optimizers differ. */
async function agreedParts(source: tf.LayersModel | OptimizedVariables, group: Group): Promise<Parts> {
  let parts: Parts | undefined;
  let told: Told;
  let cause: unknown;
  try {
    parts = new Parts(source);
    const { optimizer } = parts;
    if (wrapped.has(optimizer)) throw wrappedAlready('optimizer');
    told = { optimizer: `${optimizer.getClassName()} ${JSON.stringify(optimizer.getConfig())}` };
  } catch (error) {
    cause = error;
    told = { error: (error as Error).message };
  }
  const all = await group.allGatherObject(told, { label: 'dataParallel' });
  const failed = all.findIndex(({ error }) => error !== undefined);
  if (failed === group.rank) throw cause;
  if (failed >= 0) throw refused(all[failed]!.error!, failed, cause);
  const optimizers = all.map(({ optimizer }) => optimizer!);
  if (optimizers.some((each) => each !== optimizers[0]))
    throw differs(
      'dataParallel',
      'the optimizers',
      optimizers,
      'Compile the model with the same one on all ranks.',
    );
  return parts!;
}
