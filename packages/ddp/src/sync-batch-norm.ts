// Batch normalization over the batches of all ranks. The layer computes means and sums of its own batch and
// passes them to its `sync` to be exchanged; this file knows nothing else about layers. A separate group
// keeps these exchanges, which happen in the middle of forward and backward, out of the order of the buckets.
import { asBuffer, type BufferCarrier, bufferSymbol, elementsOf, type Group } from '@ringwise/collectives';
import { checkGroup } from './check.ts';
import { cannotBlock, notModules } from './errors.ts';

/** The exchanges that a batch normalization needs in training; see BatchNormSync of @ringwise/tensor. */
export interface BatchNormExchange {
  /**
   * Replaces a rank's moments by those of all ranks together. The buffer has length [2 · channels + 1], in
   * host memory: means, sums of squared deviations, number of elements per channel.
   */
  readonly moments: (own: BufferCarrier) => void;
  /**
   * Replaces the buffer by its sum over all ranks. It has length [2 · channels] and is on the layer's device.
   */
  readonly gradSums: (own: BufferCarrier) => void;
}

interface NormLayer {
  sync: BatchNormExchange | null;
}

/** A model of @ringwise/tensor, or any object that lists its layers the same way. */
export interface ModuleTree {
  readonly modules: () => Iterable<object>;
}

/**
 * Makes every batch normalization of `model` use the batches of all ranks, which may be empty or of different
 * sizes. Resolves with the number of such layers. Collective: makes a subgroup of all ranks, which closes
 * with `group`. Forward and backward block in it, so the group must be able to block.
 */
export async function convertSyncBatchNorm(model: ModuleTree, group: Group): Promise<number> {
  if (typeof model?.modules !== 'function') throw notModules();
  checkGroup('convertSyncBatchNorm', group);
  const layers = [...model.modules()].filter((layer): layer is NormLayer => 'sync' in layer);
  if (group.size === 1 || layers.length === 0) return layers.length;
  if (!group.supports.sync) throw cannotBlock(group.backend);
  const own = (await group.split(0, group.rank, { name: `${group.name} batch norm` }))!;
  for (const layer of layers) layer.sync = exchangeOver(own);
  return layers.length;
}

/** Returns the exchange of a layer, which uses blocking operations of `group`. */
export function exchangeOver(
  group: Pick<Group, 'size' | 'allGatherSync' | 'allReduceSync' | 'allReduce'>,
): BatchNormExchange {
  return {
    moments: (own) => {
      const mine = floatsOf(own);
      const all = new Float64Array(mine.length * group.size);
      group.allGatherSync(Float64Array.from(mine), all);
      mine.set(joined(all, group.size));
    },
    // For device memory the stream waits instead of this thread.
    gradSums: (own) => (isNear(own) ? group.allReduceSync(own) : group.allReduce(own).fence()),
  };
}

/** Combines the moments of several batches: the parallel algorithm of Chan, Golub and LeVeque, 1979. */
function joined(all: Float64Array, ranks: number): Float64Array {
  const length = all.length / ranks;
  const channels = (length - 1) / 2;
  const out = new Float64Array(length);
  const countOf = (rank: number) => all[rank * length + 2 * channels]!;
  let total = 0;
  for (let rank = 0; rank < ranks; rank++) total += countOf(rank);
  out[2 * channels] = total;
  const live = Array.from({ length: ranks }, (_, rank) => rank).filter((rank) => countOf(rank) > 0);
  for (let c = 0; c < channels; c++) {
    let mean = 0;
    for (const rank of live) mean += (countOf(rank) / total) * all[rank * length + c]!;
    let squares = 0;
    for (const rank of live) {
      const distance = all[rank * length + c]! - mean;
      squares += all[rank * length + channels + c]! + countOf(rank) * distance * distance;
    }
    out[c] = mean;
    out[channels + c] = squares;
  }
  return out;
}

const isNear = (own: BufferCarrier): boolean => asBuffer(own).host !== null;

function floatsOf(own: BufferCarrier): Float32Array | Float64Array {
  return elementsOf(own[bufferSymbol]()) as Float32Array | Float64Array;
}
