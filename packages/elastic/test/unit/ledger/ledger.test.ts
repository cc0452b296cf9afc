// Deals samples to steps and ranks. However often ranks are lost or join, each sample of an epoch is used once.
import { DistributedSampler } from '@ringwise/data';
import { describe, expect, it } from 'vitest';
import { firstCursor, Ledger, type LedgerOptions, ownedBy } from '../../../src/ledger/ledger.ts';

/** Returns a function that gives numbers from 0 up to `below`, by a linear congruential generator. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

describe('over random series of losses and joins', () => {
  const policies: Record<string, (random: (below: number) => number) => LedgerOptions> = {
    'a global batch': (random) => {
      const microBatch = 1 + random(4);
      return { microBatch, globalBatch: microBatch * (1 + random(6)) };
    },
    'a batch per rank': (random) => ({ batchPerRank: 1 + random(5) }),
  };
  for (const [name, policyOf] of Object.entries(policies))
    it(`each sample of each epoch is used once, with ${name}`, () => {
      for (let seed = 0; seed < 200; seed++) {
        const random = randomFrom(seed);
        const length = 1 + random(60);
        const ledger = new Ledger(length, { ...policyOf(random), seed, shuffle: random(2) === 0 });
        const used = [new Uint8Array(length), new Uint8Array(length)];
        let size = 1 + random(6);
        let attempts = 0;
        for (let cursor = firstCursor; cursor.epoch < 2; ) {
          const plan = ledger.stepAt(cursor, size);
          const isLost = random(3) === 0 && attempts++ < 100; // the step is redone by another number of ranks
          const indices = Array.from({ length: size }, (_, rank) => ownedBy(plan, rank, size))
            .flat()
            .flatMap((microBatch) => ledger.indicesOf(microBatch));
          expect(indices).toHaveLength(plan.end - plan.start);
          if (!isLost) {
            for (const index of indices) used[cursor.epoch]![index]!++;
            cursor = ledger.after(plan);
          }
          if (isLost || random(5) === 0) size = 1 + random(6);
        }
        for (const counts of used) expect(counts.every((count) => count === 1)).toBe(true);
      }
    });
});

it('takes the samples that DistributedSampler gives to all ranks in the same step', () => {
  const [length, replicas, batch, seed] = [48, 3, 4, 7];
  const ledger = new Ledger(length, { globalBatch: 12, microBatch: 4, seed });
  for (const epoch of [0, 1]) {
    const ranks = Array.from({ length: replicas }, (_, rank) => {
      const sampler = new DistributedSampler(length, { replicas, rank, seed });
      sampler.setEpoch(epoch);
      return [...sampler];
    });
    for (let step = 0, cursor = { epoch, step, position: 0 }; cursor.epoch === epoch; step++) {
      const plan = ledger.stepAt(cursor, replicas);
      const theirs = ranks.flatMap((indices) => indices.slice(step * batch, (step + 1) * batch));
      const ours = plan.microBatches.flatMap((each) => ledger.indicesOf(each));
      expect(ours.sort((a, b) => a - b)).toEqual(theirs.sort((a, b) => a - b));
      cursor = ledger.after(plan);
    }
  }
});

it('deals contiguous blocks whose lengths differ by at most one, to the first ranks if there are few', () => {
  const ledger = new Ledger(40, { globalBatch: 10, microBatch: 1 });
  const plan = ledger.stepAt(firstCursor, 4);
  const blocks = [0, 1, 2, 3].map((rank) => ownedBy(plan, rank, 4).map(({ index }) => index));
  expect(blocks).toEqual([
    [0, 1, 2],
    [3, 4],
    [5, 6, 7],
    [8, 9],
  ]);
  const few = new Ledger(2, { globalBatch: 2, microBatch: 1 }).stepAt(firstCursor, 4);
  expect([0, 1, 2, 3].map((rank) => ownedBy(few, rank, 4).length)).toEqual([1, 0, 1, 0]);
});

it('ends an epoch with a short step, and says so in micro-batches', () => {
  const ledger = new Ledger(11, { globalBatch: 6, microBatch: 3, shuffle: false });
  const last = ledger.stepAt({ epoch: 0, step: 1, position: 6 }, 2);
  expect(last.microBatches.map(({ start, end }) => [start, end])).toEqual([
    [6, 9],
    [9, 11],
  ]);
  expect(ledger.after(last)).toEqual({ epoch: 1, step: 0, position: 0 });
  expect(ledger.stepsOf(5)).toBe(2);
});

it('refuses options that do not fit', () => {
  const refused: [options: object, text: string][] = [
    [{}, 'loader: expected either globalBatch and microBatch, or batchPerRank, got neither.'],
    [{ globalBatch: 4, batchPerRank: 2 }, 'batchPerRank, got both'],
    [{ globalBatch: 4 }, 'loader: microBatch: expected an integer of at least 1, got undefined.'],
    [{ globalBatch: 5, microBatch: 2 }, 'loader: globalBatch: expected a multiple of microBatch, 2, got 5.'],
    [{ batchPerRank: 2, microBatch: 2 }, 'loader: microBatch: expected none beside batchPerRank, got 2.'],
    [{ batchPerRank: 2, seed: -1 }, 'loader: seed'],
    [{ batchPerRank: 2, order: 3 }, 'loader: order'],
    [{ batchPerRank: 2, dropLast: true }, "unknown option 'dropLast'"],
  ];
  for (const [options, text] of refused) {
    expect(() => new Ledger(10, options)).toThrow(text);
    expect(() => new Ledger(10, options)).toThrow(expect.objectContaining({ code: 'ERR_ELASTIC_INVALID' }));
  }
  expect(() => new Ledger(0, { batchPerRank: 1 })).toThrow('length of the data set');
  const short = new Ledger(3, { batchPerRank: 1, order: () => [0, 1] });
  expect(() => short.indicesOf(short.stepAt(firstCursor, 1).microBatches[0]!)).toThrow(
    'order of epoch 0: expected 3 indices, one for each sample, got 2.',
  );
});
