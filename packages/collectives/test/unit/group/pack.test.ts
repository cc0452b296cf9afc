import { describe, expect, it } from 'vitest';
import { allocPacked, bundlesOf, pack, packingOf, unpack } from '../../../src/group/pack.ts';
import { asBuffer, elementsOf } from '../../../src/index.ts';

const view = (count: number, make = Float32Array) => asBuffer(new make(count));

describe('a packed buffer', () => {
  it('holds a part of every member in each block', () => {
    const [a, b] = [Int32Array.of(1, 2, 3, 4), Int32Array.of(10, 20)];
    const packed = allocPacked([asBuffer(a), asBuffer(b)], 2);
    pack(packed);
    expect([...elementsOf(packed.whole)]).toEqual([1, 2, 10, 3, 4, 20]);
    a.fill(0);
    b.fill(0);
    unpack(packed);
    expect([a, b]).toEqual([Int32Array.of(1, 2, 3, 4), Int32Array.of(10, 20)]);
  });
});

describe('bundles', () => {
  it('join small buffers, by dtype, in order of first appearance', () => {
    const ints = (count: number) => asBuffer(new Int32Array(count));
    const parts = [view(3), ints(1), view(16_384), view(0), ints(2), view(16_383)];
    expect(bundlesOf(parts)).toEqual([[0, 3, 5], [1, 4], [2]]);
  });

  it('do not join memory that JavaScript cannot access', () => {
    const hidden = { ...view(3), host: null, handle: { address: 16n, owner: {} } };
    expect(bundlesOf([view(3), hidden, hidden, view(1)])).toEqual([[0, 3], [1], [2]]);
  });
});

describe('the packing', () => {
  it('tells lists with equal totals apart, and is never 0', () => {
    const digests = [
      [3, 5],
      [5, 3],
      [8, 0],
      [0, 8],
      [2 ** 33, 0],
      [0, 2 ** 33],
    ].map((counts) => packingOf(counts.map((count) => ({ ...view(0), count }))));
    expect(new Set(digests).size).toBe(digests.length);
    for (const digest of digests) expect(digest > 0 && digest < 2 ** 31).toBe(true);
  });
});
