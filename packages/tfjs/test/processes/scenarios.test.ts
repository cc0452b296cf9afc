// What goes wrong on two ranks, and what is unusual; see the fixture for the programs.
import { values, withRanks } from '@ringwise/testing';
import { beforeAll, describe, expect, it } from 'vitest';

let ranks: readonly Record<string, unknown>[] = [];

beforeAll(async () => {
  const url = new URL('../fixtures/scenarios.ts', import.meta.url);
  ranks = values<Record<string, unknown>>(await withRanks(2, url, 'runAll'));
});

/** Returns what both ranks have returned, which must be the same. */
function both<T>(name: string): T {
  const [first, second] = ranks.map((each) => each[name]);
  expect(second).toEqual(first);
  expect(String(first)).not.toMatch(/^unexpected/);
  return first as T;
}

describe('all ranks get one sentence', () => {
  it.each([
    ['otherModels', /^ERR_DDP_MISMATCH .*rank 0 has "weight 0 \(kernel\)" \[float32 × 4 × 3\]; rank 1 has/],
    ['otherOptimizers', /^ERR_TFJS_MISMATCH dataParallel: the optimizers differ .*: Adam .* on rank 0; SGD /],
    [
      'otherRates',
      /^ERR_TFJS_MISMATCH dataParallel: the optimizers differ .*0\.1\} on rank 0; .*1\.1\} on rank 1/,
    ],
    [
      'otherSamples',
      /^ERR_TFJS_MISMATCH fit: the settings differ .*"samples":24.* on rank 0; .*"samples":12.*1\./,
    ],
    ['otherBatches', /^ERR_TFJS_MISMATCH trainOnBatch: batch sizes differ .*: 4 on rank 0; 3 on rank 1\. /],
    [
      'otherMetrics',
      /^ERR_TFJS_MISMATCH fit: the settings differ .*"metrics":\["loss","acc"\].* on rank 0; .*"mse"/,
    ],
    ['otherLoss', /^ERR_TFJS_MISMATCH fit: the settings differ .*"loss":"meanSquaredError"/],
    [
      'otherRateLater',
      /^ERR_TFJS_MISMATCH fit: .* learning rates differ between ranks: 0\.1 on rank 0; 0\.05 /,
    ],
  ])('%s', (name, sentence) => {
    expect(both(name)).toMatch(sentence);
  });

  it.each([
    [
      'notCompiledOnOne',
      1,
      /^ERR_TFJS_INVALID dataParallel: expected a compiled model, .* Call model\.compile\(\)/,
    ],
    ['disposedOnOne', 0, /^ERR_TFJS_INVALID dataParallel: "sequential_.*" is disposed/],
  ] as const)('%s', (name, rank, sentence) => {
    for (const each of ranks) expect(each[name]).toMatch(sentence);
    expect(ranks[1 - rank]![name]).toMatch(new RegExp(`\\(on rank ${rank}\\)$`));
  });

  it('data sets of different lengths end in an error, not in a hang', () => {
    for (const each of ranks)
      expect(each.datasetLengths).toMatch(/^ERR_COLL_MISMATCH .*labelled "fit: end of an epoch"/);
  });

  it('a variable that the loss does not use', () => {
    // A rank that is still in an earlier call hears it from the rank that found it first, which aborts the group.
    const sentence = /^(ERR_DDP_UNUSED|ERR_COLL_ABORTED .*aborted the group:) .*"variable 1"/;
    for (const each of ranks) expect(each.unusedIsAnError).toMatch(sentence);
    expect(ranks.some((each) => String(each.unusedIsAnError).startsWith('ERR_DDP_UNUSED'))).toBe(true);
  });
});

describe('state of the optimizer', () => {
  it('is that of rank 0, which resumed', () => {
    const { first, later } = both<{ first: number[][]; later: number[][] }>('resumed');
    expect(first[0]).toEqual([12]); // 6 batches in 2 epochs
    expect(
      first
        .slice(1)
        .flat()
        .some((moment) => moment !== 0),
    ).toBe(true);
    expect(later[0]).toEqual([15]);
  });

  it('is that of rank 0, although other ranks have trained longer', () => {
    const states = both<number[][][]>('resumedOthers');
    // 6 batches of rank 0 alone, then 3 of both. Then none, one or two numbers for each of 4 weights.
    expect(states.map(([steps]) => steps)).toEqual(states.map(() => [6 + 3]));
    expect(states.map((state) => state.length - 1)).toEqual([0, 4, 8, 4, 8]);
    expect(states.flat(2).every(Number.isFinite)).toBe(true);
  });

  it('a sentence says which optimizer cannot be resumed', () => {
    const { error, again } = both<{ error: string; again: string | null }>('resumedAdamax');
    expect(error).toMatch(/^ERR_TFJS_INVALID dataParallel: Adamax .* Compile the model again\.$/);
    expect(again).toBeNull();
  });
});

describe('callbacks', () => {
  it('EarlyStopping ends on all ranks in the same epoch', () => {
    const { epochs, history } = both<{ epochs: number; history: { loss: number[] } }>('earlyStopping');
    expect(epochs).toBeGreaterThan(1);
    expect(epochs).toBeLessThan(50);
    expect(history.loss).toHaveLength(epochs);
  });

  it('one rank stops all', () => {
    expect(both('stopsOnOne')).toBe(3);
    expect(both('stopsInBatch')).toBe(2);
  });

  it('change the learning rate on all ranks', () => {
    expect(both<number[]>('sameRateLater').every(Number.isFinite)).toBe(true);
  });
});

describe('models', () => {
  it('frozen weights are those of rank 0 and stay', () => {
    const { before, after } = both<{ before: number[]; after: number[] }>('frozen');
    expect(after).toEqual(before);
  });

  it('a layer that is used twice, a recurrent layer, a regularizer', () => {
    expect(both<number[]>('shared').every(Number.isFinite)).toBe(true);
  });

  it("variables without layers, with unused: 'skip'", () => {
    // Rank 0 has gradients 1, 1 and 1; rank 1 has 3, 3 and none. Then both have 1, 1 and none.
    expect(both('unused')).toEqual([1 - 2 - 1, 2 - 2 - 1, 3 - 0.5]);
  });

  it('the last layer is being averaged before the gradient of the first is computed', () => {
    expect(both('overlap')).toBe(1);
  });
});

it('average()', () => {
  const [averages, error] = both<[number[], string]>('average');
  expect(averages).toEqual([0.5, 4]);
  expect(error).toMatch(/^ERR_TFJS_CLOSED average: .* after close\(\)/);
});
