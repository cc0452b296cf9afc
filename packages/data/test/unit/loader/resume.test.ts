import { describe, expect, it } from 'vitest';
import {
  DataLoader,
  DistributedSampler,
  LengthGroupedSampler,
  RandomSampler,
  type SamplerState,
  WeightedRandomSampler,
} from '../../../src/index.ts';

const numbers = (length: number) => ({ length, get: (index: number) => index });

interface Rank {
  readonly loader: DataLoader<number, number[]>;
  readonly sampler: DistributedSampler;
}

function ranksOf(length: number, replicas: number, batchSize: number, dropLast = false): Rank[] {
  return Array.from({ length: replicas }, (_, rank) => {
    const sampler = new DistributedSampler(length, { replicas, rank, seed: 3, dropLast });
    return {
      sampler,
      loader: new DataLoader(numbers(length), { sampler, batchSize, collate: (batch) => batch }),
    };
  });
}

/** Reads `steps` batches and stops there, like a job that is killed. Returns the samples. */
function read({ loader }: Rank, steps: number): number[] {
  const seen: number[] = [];
  for (const batch of loader) {
    seen.push(...batch);
    steps -= 1;
    if (steps === 0) break;
  }
  return seen;
}

describe('state and load', () => {
  it('continue exactly at the same world size, wherever the epoch was left', () => {
    for (const dropLast of [false, true]) {
      for (let steps = 1; steps <= 5; steps++) {
        const whole = ranksOf(37, 3, 3, dropLast).map((rank) => read(rank, Infinity));
        const before = ranksOf(37, 3, 3, dropLast);
        const heads = before.map((rank) => read(rank, steps));
        const after = ranksOf(37, 3, 3, dropLast);
        after.forEach((rank, i) => void rank.loader.load(before[i]!.loader.state()));
        const tails = after.map((rank) => read(rank, Infinity));
        expect(heads.map((head, i) => [...head, ...tails[i]!])).toEqual(whole);
      }
    }
  });

  it('cover exactly the remaining samples at another world size', () => {
    for (const [length, replicas, batchSize, steps, replicasAfter] of [
      [100, 4, 5, 2, 3],
      [101, 2, 7, 3, 5],
      [64, 1, 10, 4, 8],
      [37, 3, 3, 5, 1],
      [50, 5, 2, 1, 60],
    ] as const) {
      const before = ranksOf(length, replicas, batchSize);
      const seen = before.flatMap((rank) => read(rank, steps));
      const states = before.map(({ loader }) => loader.state());
      for (const state of states) expect(state).toEqual(states[0]);

      const after = ranksOf(length, replicasAfter, 4);
      for (const { loader } of after) loader.load(JSON.parse(JSON.stringify(states[0])) as SamplerState);
      const rest = after.flatMap((rank) => read(rank, Infinity));
      const remaining = Math.max(0, length - seen.length);
      expect(new Set([...seen, ...rest]).size).toBe(length);
      expect(rest).toHaveLength(Math.ceil(remaining / replicasAfter) * replicasAfter);
    }
  });

  it('cover an epoch exactly over many restarts, each at another world size', () => {
    const length = 211;
    const seen: number[] = [];
    let state: SamplerState | null = null;
    for (const [replicas, steps] of [
      [4, 3],
      [3, 5],
      [7, 2],
      [1, 4],
      [2, 6],
      [5, Infinity],
    ] as const) {
      const ranks = ranksOf(length, replicas, 3);
      if (state) for (const { loader } of ranks) loader.load(state);
      const parts = ranks.map((rank) => read(rank, steps));
      expect(new Set(parts.map((part) => part.length)).size).toBe(1);
      seen.push(...parts.flat());
      const states: SamplerState[] = ranks.map(({ loader }) => loader.state());
      for (const other of states) expect(other).toEqual(states[0]);
      state = states[0]!;
    }
    expect(new Set(seen).size).toBe(length);
    expect(seen.length - length).toBeLessThan(5); // only the last part is padded
    expect(new Set(seen.slice(0, length)).size).toBe(length);
  });

  it('leave the epochs after the resumed one whole', () => {
    const [rank] = ranksOf(10, 1, 3);
    read(rank!, 2);
    const [again] = ranksOf(10, 1, 3);
    again!.loader.load(rank!.loader.state());
    again!.sampler.setEpoch(0); // a training loop calls it; the position must stay
    expect(read(again!, Infinity)).toHaveLength(4);
    again!.sampler.setEpoch(1);
    expect(read(again!, Infinity)).toHaveLength(10);
    again!.sampler.setEpoch(2);
    expect(read(again!, Infinity)).toHaveLength(10);
  });

  it('give nothing more of an epoch that was read to its end', () => {
    const [rank] = ranksOf(10, 1, 4);
    read(rank!, Infinity);
    expect(rank!.loader.state()).toEqual({ seed: 3, epoch: 0, consumed: 10, length: 10 });
    rank!.loader.load(rank!.loader.state());
    expect(read(rank!, Infinity)).toEqual([]);
  });

  it('count a batch once it is handed out, not when it is loaded ahead', async () => {
    const dataset = { length: 12, get: (index: number) => Promise.resolve(index) };
    const loader = new DataLoader(dataset, { batchSize: 2, shuffle: true, prefetch: 3 });
    const consumed: number[] = [];
    for await (const _ of loader) consumed.push(loader.state().consumed);
    expect(consumed).toEqual([2, 4, 6, 8, 10, 12]);
  });

  it('go on to the next epoch after a resumed shuffled pass', () => {
    const samplers = [new RandomSampler(8, { seed: 2 }), new RandomSampler(8, { seed: 2 })] as const;
    const [first, second] = samplers.map(
      (sampler) => new DataLoader(numbers(8), { sampler, collate: (batch) => batch }),
    );
    const whole = [...first!, ...first!, ...first!].flat();
    second!.load({ seed: 2, epoch: 1, consumed: 3, length: 8 });
    expect([...second!, ...second!].flat()).toEqual(whole.slice(11));
  });

  it('adopt the seed of the state', () => {
    const sampler = new WeightedRandomSampler([1, 2, 3], 5, { seed: 1 });
    const other = new WeightedRandomSampler([1, 2, 3], 5, { seed: 9 });
    other.load(sampler.state());
    expect([...other]).toEqual([...sampler]);
  });

  it('refuse a state of another data set or kind of sampler', () => {
    const shuffled = new RandomSampler(8);
    const state = shuffled.state();
    expect(() => new RandomSampler(9).load(state)).toThrow(
      'RandomSampler.load: length of the state does not fit; expected 9, got 8.',
    );
    expect(() => new DataLoader(numbers(8), { shuffle: true }).load(null as never)).toThrow(
      'RandomSampler.load: expected a state, as state() returns one, got null. Leave the call out if there is none.',
    );
    const grouped = new LengthGroupedSampler([1, 2], { batchSize: 1 });
    expect(() => grouped.load(undefined as never)).toThrow('LengthGroupedSampler.load: expected a state');
    const fixed = new DistributedSampler(8, { replicas: 1, rank: 0, shuffle: false });
    expect(() => fixed.load(state)).toThrow('expected null (fixed order), got 0');
    expect(() => shuffled.load(fixed.state())).toThrow('expected a number (shuffled), got null');
    expect(() => shuffled.load({ ...state, consumed: 9 })).toThrow('expected an integer from 0 to 8, got 9');
    expect(() => shuffled.load({ ...state, epoch: -1 })).toThrow(
      expect.objectContaining({ code: 'ERR_DATA_STATE' }),
    );
  });

  it('are refused where the order is not known', () => {
    const stream = new DataLoader(new Set([1, 2]));
    expect(() => stream.state()).toThrow('an iterable data set does not know its position in an epoch');
    const own = new DataLoader(numbers(2), { batchSampler: [[0], [1]] });
    expect(() => own.state()).toThrow('the batchSampler does not know its position');
    const list = new DataLoader(numbers(2), { sampler: [1, 0] });
    expect(() => list.state()).toThrow('its sampler does not know its position');
  });
});
