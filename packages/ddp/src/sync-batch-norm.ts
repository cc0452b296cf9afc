// Batch normalization over the batches of all ranks. The layer computes moments and sums of its own batch and passes
// them to its `sync` to be exchanged; this file knows nothing else about layers.
//
// Exchanges on a device use the group of ddp(): its buckets and these exchanges then are operations of one NCCL
// communicator, in one order. Kernels of two communicators on one device wait for each other if the ranks start them
// in different orders. Exchanges in host memory cannot block each other, so a subgroup keeps them out of the order of
// the buckets.
import { asBuffer, type BufferCarrier, type Group, outsideCapture } from '@ringwise/collectives';
import { checkGroup } from './check.ts';
import { cannotBlock, notModules } from './errors.ts';

/** The exchanges that a batch normalization needs in training; see BatchNormSync of @ringwise/tensor. */
export interface BatchNormExchange {
  /** Number of ranks. */
  readonly size: number;
  /**
   * Fills `all`, [ranks, length], with the `own` of every rank; both are on the layer's device. The last element of
   * `own` is `count`. Returns the sum of the counts of all ranks; blocks until it is known.
   */
  readonly gather: (own: BufferCarrier, all: BufferCarrier, count: number) => number;
  /** Replaces the buffer, which is on the layer's device, by its sum over all ranks. */
  readonly gradSums: (own: BufferCarrier) => void;
}

interface NormLayer {
  sync: BatchNormExchange | null;
}

/** A model of @ringwise/tensor, or any object that lists its layers the same way. */
export interface ModuleTree {
  /** Returns the model and all modules inside it. */
  readonly modules: () => Iterable<object>;
}

type HostGroup = Pick<Group, 'size' | 'allGatherSync' | 'allReduceSync'>;
type DeviceGroup = Pick<Group, 'allGather' | 'allReduce'>;

/** Groups that device batch norms use for exchanges in the middle of forward and backward. */
const converted = new WeakSet<object>();

/** Models that convertSyncBatchNorm() has converted, including those in a group of one. */
const models = new WeakSet<object>();

/** Returns whether convertSyncBatchNorm() was called for a model. */
export const isConverted = (model: Partial<ModuleTree>): model is ModuleTree => models.has(model);

/** Returns whether batch norms exchange device memory in `group`. */
export const hasExchanges = (group: Group): boolean => converted.has(group);

/**
 * Returns whether a model has layers that exchange their statistics with other ranks in training.
 * @internal
 */
export function hasSyncBatchNorm(model: Partial<ModuleTree>): boolean {
  if (typeof model.modules !== 'function') return false;
  return [...model.modules()].some((layer) => 'sync' in layer && layer.sync !== null);
}

/**
 * Makes every batch normalization of `model` use the batches of all ranks, which may be empty or of different
 * sizes. Resolves with the number of such layers. `group` is the group of ddp(). Collective: makes a subgroup
 * of all ranks, which closes with `group`. Forward and backward block in it, so the group must be able to
 * block.
 *
 * @example
 * ```ts
 * await convertSyncBatchNorm(net, group); // before ddp()
 * const model = await ddp(net, { group });
 * ```
 */
export async function convertSyncBatchNorm(model: ModuleTree, group: Group): Promise<number> {
  if (typeof model?.modules !== 'function') throw notModules();
  checkGroup('convertSyncBatchNorm', group);
  const layers = [...model.modules()].filter((layer): layer is NormLayer => 'sync' in layer);
  if (group.size > 1 && layers.length > 0 && !group.supports.sync) throw cannotBlock(group.backend);
  if (group.size === 1 && models.has(model)) {
    for (const layer of layers) layer.sync = null; // leaves the exchange over a larger group
  }
  models.add(model);
  if (group.size === 1 || layers.length === 0) return layers.length;
  const inHostMemory = (await group.split(0, group.rank, { name: `${group.name} batch norm` }))!;
  for (const layer of layers) layer.sync = exchangeOver(inHostMemory, group);
  converted.add(group);
  return layers.length;
}

/**
 * Runs `fn`, the forward and backward of one batch, whose loss counts `weight` times as much as the losses of the other
 * ranks. The exchanges of batch norms over all ranks include the weight; the caller multiplies this rank's gradients by
 * it. A rank without a batch passes weight 0 and any batch, takes part in the exchanges without samples, and drops the
 * gradients. Returns the result of `fn`. Host memory only.
 *
 * @internal
 */
export async function withBatchWeight<T>(
  model: Partial<ModuleTree>,
  weight: number,
  fn: () => T | Promise<T>,
): Promise<T> {
  const layers = [...(model.modules?.() ?? [])].filter((layer): layer is NormLayer => 'sync' in layer);
  const before = layers.map(({ sync }) => sync);
  for (const layer of layers) if (layer.sync !== null) layer.sync = weighted(layer.sync, weight);
  try {
    return await fn();
  } finally {
    for (const [i, layer] of layers.entries()) layer.sync = before[i]!;
  }
}

function weighted(sync: BatchNormExchange, weight: number): BatchNormExchange {
  return {
    size: sync.size,
    gather: (own, all, count) => {
      if (weight === 0) floatsOf(own).fill(0);
      return sync.gather(own, all, weight === 0 ? 0 : count);
    },
    gradSums: (own) => {
      const sums = floatsOf(own);
      for (let i = 0; i < sums.length; i++) sums[i] = weight === 0 ? 0 : sums[i]! * weight;
      sync.gradSums(own);
      // The caller multiplies the gradients computed from these sums by the weight.
      if (weight > 0) for (let i = 0; i < sums.length; i++) sums[i]! /= weight;
    },
  };
}

/** Returns the exchange of one layer: in host memory over `host`, whose calls block, and on a device over `device`. */
export function exchangeOver(host: HostGroup, device: DeviceGroup): BatchNormExchange {
  return {
    size: host.size,
    gather: (own, all, count) => {
      if (!isOnHost(own)) {
        device.allGather(own, all).fence(); // the stream waits instead of this thread
        return sumOf(count, host);
      }
      const gathered = floatsOf(all);
      host.allGatherSync(floatsOf(own), gathered);
      const length = gathered.length / host.size;
      let total = 0;
      for (let i = length - 1; i < gathered.length; i += length) total += gathered[i]!;
      return total;
    },
    gradSums: (own) => {
      if (isOnHost(own)) host.allReduceSync(own);
      else device.allReduce(own).fence();
    },
  };
}

/**
 * Adds up the counts of all ranks over host memory, so that no rank waits for its device. A captured step has fixed
 * shapes on all ranks, so the sum at the time of the capture is that of every launch.
 */
function sumOf(count: number, host: HostGroup): number {
  const sum = Float64Array.of(count);
  outsideCapture(() => host.allReduceSync(sum));
  return sum[0]!;
}

const isOnHost = (own: BufferCarrier): boolean => asBuffer(own).host !== null;

const floatsOf = (own: BufferCarrier) => asBuffer(own).host as Float32Array | Float64Array;
