// Batch normalisation over the batches of all ranks. The layer computes means and sums of its own batch and lets them be
// exchanged (`sync`); nothing here knows more about it. A group of its own keeps these exchanges, in the middle of
// forward and backward, out of the order of the buckets.
import { asBuffer, type BufferCarrier, bufferSymbol, elementsOf, type Group } from '@ringwise/collectives';
import { checkGroup } from './check.ts';
import { cannotBlock, notModules } from './errors.ts';

/** What a batch normalisation calls while it trains; see BatchNormSync of @ringwise/tensor. */
export interface BatchNormExchange {
  /**
   * [2 · channels + 1], in host memory: means, sums of squared distances, elements per channel. Overwritten with those of all
   * ranks.
   */
  readonly moments: (own: BufferCarrier) => void;
  /** [2 · channels], where the layer computes: overwritten with the sums over all ranks. */
  readonly gradSums: (own: BufferCarrier) => void;
}

interface NormLayer {
  sync: BatchNormExchange | null;
}

/** A model of @ringwise/tensor, or anything that lists its layers like it. */
export interface ModuleTree {
  readonly modules: () => Iterable<object>;
}

/**
 * Makes every batch normalisation of `model` one over all ranks, empty and uneven batches included, and returns how many
 * there are. Collective: makes a subgroup of all ranks, which closes with `group`. Forward and backward block in it, so
 * the group must be able to.
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

/** The exchange of a layer, by blocking operations of `group`. */
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
    // On a device its stream waits, and not this thread.
    gradSums: (own) => (isNear(own) ? group.allReduceSync(own) : group.allReduce(own).fence()),
  };
}

/** Of several batches' moments, those of all together: the parallel form of Chan, Golub and LeVeque, 1979. */
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
