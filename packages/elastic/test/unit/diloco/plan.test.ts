import { describe, expect, it } from 'vitest';
import { countLayers, fragmentsAt, planFragments } from '../../../src/diloco/plan.ts';

const params = (...sizes: readonly (readonly [string, number])[]) =>
  sizes.map(([name, count]) => ({ name, count }));

describe('planFragments', () => {
  it('keeps the parameters of a layer together, and divides elements about equally', () => {
    const model = params(
      ...([0, 1, 2, 3] as const).flatMap(
        (i) =>
          [
            [`${i}.weight`, 90],
            [`${i}.bias`, 10],
          ] as const,
      ),
    );
    expect(planFragments(model, 1)).toEqual([[0, 1, 2, 3, 4, 5, 6, 7]]);
    expect(planFragments(model, 2)).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
    ]);
    expect(planFragments(model, 4)).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
      [6, 7],
    ]);
    expect(planFragments(model, 5)).toBeNull();
    expect(countLayers(model)).toBe(4);
  });

  it('gives every fragment something and every parameter a fragment, whatever the sizes', () => {
    for (const sizes of [
      [1000, 1, 1, 1, 1],
      [1, 1, 1, 1, 1000],
      [5, 0, 0, 7, 3, 900, 2],
      [1, 2, 3],
    ]) {
      const model = params(...sizes.map((count, i) => [`layer${i}.w`, count] as const));
      for (let fragments = 1; fragments <= sizes.length; fragments++) {
        const plan = planFragments(model, fragments)!;
        expect(plan).toHaveLength(fragments);
        expect(plan.every((positions) => positions.length > 0)).toBe(true);
        expect(plan.flat()).toEqual([...sizes.keys()]);
      }
    }
  });

  it('takes parameters without layers one by one', () => {
    expect(planFragments(params(['a', 1], ['b', 1], ['c', 1]), 3)).toEqual([[0], [1], [2]]);
  });
});

describe('fragmentsAt', () => {
  it('gives each fragment one turn in a round, the last one at its end', () => {
    const turns = Array.from({ length: 24 }, (_, i) => fragmentsAt(i + 1, 12, 3));
    expect(turns.flatMap((at, i) => at.map((f) => [i + 1, f]))).toEqual([
      [4, 0],
      [8, 1],
      [12, 2],
      [16, 0],
      [20, 1],
      [24, 2],
    ]);
    expect(fragmentsAt(1, 1, 3)).toEqual([0, 1, 2]);
    for (const [every, fragments] of [
      [7, 3],
      [2, 5],
      [100, 7],
    ] as const) {
      const round = Array.from({ length: every }, (_, i) => fragmentsAt(i + 1, every, fragments)).flat();
      expect(round.sort((a, b) => a - b)).toEqual(Array.from({ length: fragments }, (_, f) => f));
    }
  });
});
