import { describe, expect, it } from 'vitest';
import { randperm } from '../../../src/index.ts';
import { Mt19937 } from '../../../src/samplers/random.ts';

describe('Mt19937', () => {
  it('gives the textbook values', () => {
    expect(new Mt19937(0).uint32()).toBe(2357136044);
    const random = new Mt19937(5489); // the default seed of C++'s std::mt19937; the standard states its 10,000th value
    for (let i = 0; i < 9_999; i++) random.uint32();
    expect(random.uint32()).toBe(4123659995);
  });

  it('takes the low 32 bits of the seed', () => {
    expect(new Mt19937(2 ** 40 + 7).uint32()).toBe(new Mt19937(7).uint32());
    expect(new Mt19937(2 ** 32 - 1).uint32()).toBe(new Mt19937(2 ** 40 - 1).uint32());
  });

  it('draws floats in [0, 1) that fill the range evenly', () => {
    const random = new Mt19937(3);
    const bins = new Array<number>(10).fill(0);
    for (let i = 0; i < 10_000; i++) bins[Math.floor(random.float64() * 10)]! += 1;
    for (const bin of bins) expect(Math.abs(bin - 1000)).toBeLessThan(150);
  });
});

describe('randperm', () => {
  it('equals torch.randperm', () => {
    expect([...randperm(10, 0)]).toEqual([4, 1, 7, 5, 3, 9, 0, 8, 6, 2]);
  });

  it('is a permutation of every length', () => {
    for (const length of [0, 1, 2, 3, 623, 624, 625, 5000]) {
      expect([...randperm(length, 11)].sort((a, b) => a - b)).toEqual([...Array(length).keys()]);
    }
  });

  it('refuses lengths for which PyTorch draws differently', () => {
    expect(() => randperm(214748364, 0)).toThrow('expected an integer from 0 to 214748363, got 214748364');
    expect(() => randperm(-1, 0)).toThrow(expect.objectContaining({ code: 'ERR_DATA_ARGUMENT' }));
    expect(() => randperm(1.5, 0)).toThrow(expect.objectContaining({ code: 'ERR_DATA_ARGUMENT' }));
    for (const seed of [undefined, Number.NaN, 1.5, '7'])
      expect(() => randperm(5, seed as number)).toThrow('randperm: seed');
  });
});
