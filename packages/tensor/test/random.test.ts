import { describe, expect, test } from 'vitest';
import { Generator, generator, manualSeed, rand, randn } from '../src/index.ts';
import { philox4x32 } from '../src/philox.ts';
import { codeOf } from './code-of.ts';

test.each([
  // Known answers of Random123, the authors' own library.
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
