// Tests Philox, generators, and the distributions of random tensors.
import { describe, expect, test } from 'vitest';
import {
  bernoulli,
  full,
  Generator,
  generator,
  manualSeed,
  memory,
  multinomial,
  rand,
  randint,
  randn,
  randperm,
  type Tensor,
  tensor,
  zeros,
} from '../../src/index.ts';
import { philox4x32 } from '../../src/random/philox.ts';
import { codeOf } from '../support/code-of.ts';

test.each([
  // Known answers from Random123, the library of the algorithm's authors.
  [
    [0, 0, 0, 0],
    [0, 0],
    [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
  ],
  [
    [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
    [0xffffffff, 0xffffffff],
    [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
  ],
  [
    [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
    [0xa4093822, 0x299f31d0],
    [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  ],
])('Philox4x32-10 of %j under %j', (counter, key, want) => {
  const out = new Uint32Array(4);
  philox4x32(out, Uint32Array.from(counter), Uint32Array.from(key));
  expect([...out]).toEqual(want);
});

describe('Generator', () => {
  test('repeats its stream from a seed, and from a saved state', () => {
    const a = generator(7);
    const first = rand([5], { generator: a }).toArray();
    const state = a.state();
    const second = randn([5], { generator: a }).toArray();
    expect(state).toEqual({ seed: 7, offset: 2 });
    expect(rand([5], { generator: generator(7) }).toArray()).toEqual(first);
    const resumed = generator(0);
    resumed.setState(JSON.parse(JSON.stringify(state)));
    expect(randn([5], { generator: resumed }).toArray()).toEqual(second);
    expect(rand([5], { generator: generator(8) }).toArray()).not.toEqual(first);
    expect(rand([5], { generator: generator(7 + 2 ** 32) }).toArray()).not.toEqual(first);
  });

  test('manualSeed seeds what is drawn without a generator', () => {
    manualSeed(3);
    const first = [rand([3]).toArray(), randn([3]).toArray()];
    manualSeed(3);
    expect([rand([3]).toArray(), randn([3]).toArray()]).toEqual(first);
    expect(rand([3], { generator: generator(3) }).toArray()).toEqual(first[0]);
  });

  test('keeps the documented stream', () => {
    const uniform = rand([4], { generator: generator(0) }).toArray();
    expect(uniform).toEqual([0x6627e8, 0xe169c5, 0xbc57ac, 0x9b00db].map((word) => word / 2 ** 24));
    const normal = randn([2], { generator: generator(0) }).dataSync();
    const radius = Math.sqrt(-2 * Math.log((0x6627e8 + 1) / 2 ** 24));
    const angle = (2 * Math.PI * 0xe169c5) / 2 ** 24;
    expect(normal[0]).toBe(Math.fround(radius * Math.cos(angle)));
    expect(normal[1]).toBe(Math.fround(radius * Math.sin(angle)));
  });

  test('has the moments of its distributions', () => {
    const moments = (values: Float32Array): number[] => {
      const mean = values.reduce((s, x) => s + x, 0) / values.length;
      return [mean, values.reduce((s, x) => s + (x - mean) ** 2, 0) / values.length];
    };
    const uniform = rand([100_001], { generator: generator(1) }).dataSync() as Float32Array;
    expect(moments(uniform)[0]).toBeCloseTo(0.5, 2);
    expect(moments(uniform)[1]).toBeCloseTo(1 / 12, 2);
    expect(uniform.every((x) => x >= 0 && x < 1)).toBe(true);
    const normal = randn([100_001], { generator: generator(1) }).dataSync() as Float32Array;
    expect(moments(normal)[0]).toBeCloseTo(0, 1);
    expect(moments(normal)[1]).toBeCloseTo(1, 1);
  });

  test('refuses seeds and states that are not integers', () => {
    for (const seed of [-1, 0.5, NaN, 2 ** 53])
      expect(codeOf(() => generator(seed))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => new Generator(1).setState({ seed: 1, offset: -1 }))).toBe('ERR_TENSOR_ARGUMENT');
  });
});

const counted = (indices: Tensor, classes: number): number[] => {
  const counts = Array<number>(classes).fill(0);
  for (const index of indices.dataSync() as BigInt64Array) counts[Number(index)]!++;
  return counts;
};

describe('discrete numbers', () => {
  test('randint gives int64 in its range, each equally often', () => {
    const out = randint(-2, 3, [100, 500], { generator: generator(2) });
    expect([out.dtype, out.shape]).toEqual(['int64', [100, 500]]);
    for (const count of counted(out.add(2), 5)) expect(count / 50_000).toBeCloseTo(0.2, 1);
    for (const [low, high] of [
      [1, 1],
      [0, 0.5],
      [0, 2 ** 33],
    ] as const)
      expect(codeOf(() => randint(low, high, [1]))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('randperm gives each number once, in another order from another seed', () => {
    const order = (seed: number): bigint[] => [
      ...(randperm(1000, { generator: generator(seed) }).dataSync() as BigInt64Array),
    ];
    const sorted = order(1).toSorted((a, b) => Number(a - b));
    expect(sorted).toEqual(Array.from({ length: 1000 }, (_, i) => BigInt(i)));
    expect(order(1)).toEqual(order(1));
    expect(order(1)).not.toEqual(order(2));
    expect(randperm(0).shape).toEqual([0]);
    // Each number comes first equally often.
    const firsts = Array<number>(4).fill(0);
    const stream = generator(3);
    for (let i = 0; i < 2000; i++) firsts[randperm(4, { generator: stream }).at(0).item()]!++;
    for (const count of firsts) expect(count / 2000).toBeCloseTo(0.25, 1);
  });

  test('bernoulli draws 1 as often as its probability says', () => {
    const p = tensor([0, 0.25, 1]).unsqueeze(1).expand([3, 20_000]);
    const means = bernoulli(p, { generator: generator(4) })
      .mean(1)
      .dataSync();
    expect(means[0]).toBe(0);
    expect(means[1]).toBeCloseTo(0.25, 1);
    expect(means[2]).toBe(1);
    expect(bernoulli(full([2], 1, { dtype: 'float64' })).dtype).toBe('float64');
    expect(bernoulli(zeros([0])).shape).toEqual([0]);
  });

  test.each([1.5, -0.5, Number.NaN])('bernoulli refuses the probability %d', (p) => {
    const before = memory().tensors;
    const probabilities = tensor([0.5, p, 1]);
    expect(() => bernoulli(probabilities)).toThrow(
      `bernoulli: probabilities: expected numbers from 0 to 1, got ${p}.`,
    );
    probabilities.dispose();
    expect(memory().tensors).toBe(before);
  });

  test.each([true, false])(
    'multinomial draws in proportion to the weights, replacement %s',
    (replacement) => {
      const weights = tensor([1, 0, 2, 5]).expand([20_000, 4]);
      const first = multinomial(weights, 1, { replacement, generator: generator(5) });
      expect([first.dtype, first.shape]).toEqual(['int64', [20_000, 1]]);
      const counts = counted(first, 4);
      for (const [i, part] of [0.125, 0, 0.25, 0.625].entries())
        expect(counts[i]! / 20_000).toBeCloseTo(part, 1);
      expect(counts[1]).toBe(0);
    },
  );

  test('multinomial without replacement draws each index once, and refuses what cannot be drawn', () => {
    const drawn = multinomial(tensor([0.1, 3, 0, 2]), 3, {
      generator: generator(6),
    }).dataSync() as BigInt64Array;
    expect([...drawn].toSorted()).toEqual([0n, 1n, 3n]);
    expect(multinomial(tensor([0, 7]), 5, { replacement: true }).toArray()).toEqual([1, 1, 1, 1, 1]);
    for (const weights of [tensor([0, 1]), tensor([1, -1, 1]), tensor([1, NaN, 1]), zeros([0])])
      expect(() => multinomial(weights, 2)).toThrow(
        'multinomial: expected finite weights ≥ 0 of which at least 2',
      );
    expect(() => multinomial(tensor([1, -1]), 1)).toThrow(/in each row, got the weight -1\.$/);
    expect(() => multinomial(tensor([2, Infinity]), 1)).toThrow(/in each row, got the weight Infinity\.$/);
    expect(() => multinomial(tensor([0, 2]), 2)).toThrow(/in each row, got a row with 1\.$/);
    expect(codeOf(() => multinomial(zeros([2, 2, 2]), 1))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => multinomial(tensor([1]), 0))).toBe('ERR_TENSOR_ARGUMENT');
  });

  // A search through all weights for each draw takes minutes for these numbers.
  test('multinomial with replacement draws many times from many weights', () => {
    const count = 50_000;
    const weights = zeros([2, count]);
    weights.at(0, [10, 20]).fill_(1);
    weights.at(1, [count - 10, null]).fill_(2);
    const drawn = multinomial(weights, count, { replacement: true, generator: generator(8) });
    expect([drawn.at(0).min().item(), drawn.at(0).max().item()]).toEqual([10, 19]);
    expect([drawn.at(1).min().item(), drawn.at(1).max().item()]).toEqual([count - 10, count - 1]);
  });
});
