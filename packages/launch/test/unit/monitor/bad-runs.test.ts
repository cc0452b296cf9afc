import { describe, expect, it } from 'vitest';
import { Curve } from '../../../src/monitor/curve.ts';

const curveOf = (values: readonly number[]) => {
  const curve = new Curve(1);
  for (const [step, value] of values.entries()) curve.add(step, value);
  return curve;
};

describe('values of a curve that are not finite', () => {
  it('are told as runs of steps, with the first value and the rank that had it first', () => {
    const curve = curveOf([1, 2]);
    curve.add(2, Number.NaN, 1);
    curve.add(2, Number.NEGATIVE_INFINITY, 0);
    curve.add(3, Number.POSITIVE_INFINITY, 0);
    curve.add(4, 3, 0);
    curve.add(5, Number.NEGATIVE_INFINITY, 2);
    expect(curve.read().y).toEqual([1, 2, null, null, 3, null]);
    expect(curve.read().bad).toEqual([
      { from: 2, to: 3, value: 'NaN', rank: 1, isOpen: false },
      { from: 5, to: 5, value: '-Infinity', rank: 2, isOpen: true },
    ]);
  });

  it('are told with each change, even if the change lies behind them', () => {
    const curve = curveOf([Number.NaN, 1]);
    curve.takeChanges();
    curve.add(2, 1);
    expect(curve.takeChanges()).toEqual({
      from: 2,
      x: [2],
      y: [1],
      bad: [{ from: 0, to: 0, value: 'NaN', rank: 0, isOpen: false }],
    });
  });

  it('have exact steps when points have been merged', () => {
    const count = 50_001;
    const curve = curveOf(Array.from({ length: count }, (_, step) => (step >= 30_001 ? Number.NaN : 1)));
    expect(curve.read().x.length).toBeLessThan(2_000);
    expect(curve.read().bad).toEqual([{ from: 30_001, to: count - 1, value: 'NaN', rank: 0, isOpen: true }]);
  });

  it('are gone when training resumes before them', () => {
    const curve = curveOf([1, 1, Number.NaN, Number.NaN]);
    curve.resume();
    curve.add(1, 1);
    expect(curve.read().bad).toEqual([]);
  });

  it('are few, and among them the first, however many there are', () => {
    const curve = curveOf(Array.from({ length: 1_000 }, (_, step) => (step % 2 === 0 ? Number.NaN : 1)));
    const { bad } = curve.read();
    expect(bad.length).toBe(100);
    expect([bad[0]!.from, bad[1]!.from, bad[99]!.from]).toEqual([0, 802, 998]);
  });

  it('do not arise from large numbers whose sum overflows', () => {
    const curve = new Curve(1);
    for (const rank of [0, 1]) curve.add(0, Number.MAX_VALUE, rank);
    expect(curve.read()).toEqual({ from: 0, x: [0], y: [null], bad: [] });
  });
});
