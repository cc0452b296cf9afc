// Labels of axes, names of metrics, smoothed values, and sentences about values that are no numbers.

import { describe, expect, it } from 'vitest';
import { labelOf, valueText } from '../../../page/curves/legend.js';
import { badText, placeOf, smoothed } from '../../../page/curves/series.js';
import { durationText, logTicks, numberText, shortTexts, tickTexts } from '../../../page/format.js';

describe('the labels of an axis', () => {
  it('never repeat and name their ticks, whatever the range', () => {
    for (let exponent = -12; exponent <= 12; exponent++) {
      for (const factor of [1, 2, 2.5, 5]) {
        for (const start of [0, 1, -3, 1000, 123_456]) {
          const gap = factor * 10 ** exponent;
          const ticks = Array.from({ length: 6 }, (_, i) => (start + i) * gap);
          const texts: string[] = tickTexts(ticks);
          expect(new Set(texts).size, `${ticks}`).toBe(6);
          for (const [i, text] of texts.entries()) {
            const value = Number(text.replaceAll(',', ''));
            expect(Math.abs(value - ticks[i]!), text).toBeLessThanOrEqual(gap / 50);
          }
        }
      }
    }
  });

  it('have the same number of decimals', () => {
    expect(tickTexts([0, 0.5, 1, 1.5])).toEqual(['0', '0.5', '1.0', '1.5']);
    expect(tickTexts([0.0012, 0.0013])).toEqual(['0.0012', '0.0013']);
    expect(tickTexts([10_000, 20_000])).toEqual(['10,000', '20,000']);
    expect(tickTexts([0, 5e20, 1e21, 1.5e21])).toEqual(['0', '5e20', '1e21', '1.5e21']);
    expect([tickTexts([]), tickTexts([0]), tickTexts([7])]).toEqual([[], ['0'], ['7']]);
  });

  it('of a log axis are powers of ten, or finer ones in a short range', () => {
    expect(logTicks(0.001, 100)).toEqual([0.001, 0.01, 0.1, 1, 10, 100]);
    expect(shortTexts(logTicks(0.001, 100))).toEqual(['0.001', '0.01', '0.1', '1', '10', '100']);
    expect(logTicks(0.9, 60)).toEqual([1, 2, 5, 10, 20, 50]);
    for (const [min, max] of [
      [1.9, 2.3],
      [1e-30, 1e30],
      [2.0001, 2.0002],
      [0.5, 2],
    ] as const) {
      const ticks: number[] = logTicks(min, max);
      expect(ticks.length, `${min} ${max}`).toBeGreaterThanOrEqual(3);
      expect(ticks.length, `${min} ${max}`).toBeLessThanOrEqual(14);
      for (const tick of ticks) expect(tick >= min && tick <= max).toBe(true);
      expect(new Set(shortTexts(ticks)).size).toBe(ticks.length);
    }
  });
});

describe('a number', () => {
  it('is short', () => {
    const texts = [null, undefined, 0, 12_345, 0.123456, 1234.5, 1e-7, 1.23456e18, -1e9].map(numberText);
    expect(texts).toEqual(['–', '–', '0', '12,345', '0.1235', '1,235', '1e-7', '1.235e18', '-1e9']);
    expect([0, 75_000, 3_725_000].map(durationText)).toEqual(['0:00', '1:15', '1:02:05']);
  });
});

describe('the name of a metric', () => {
  it('tells the chart and the data set', () => {
    const names = ['valLoss', 'val_loss', 'val/loss', 'validation.loss', 'loss_val', 'lossVal', 'eval-loss'];
    for (const name of names)
      expect([name, placeOf(name)]).toEqual([name, { chart: 'loss', set: 'validation' }]);
    expect(placeOf('trainLoss')).toEqual({ chart: 'loss', set: 'train' });
    expect(placeOf('test/topFive')).toEqual({ chart: 'topFive', set: 'test' });
    expect(placeOf('testAccuracy')).toEqual({ chart: 'accuracy', set: 'test' });
  });

  it('is that of a chart if it only looks like one', () => {
    for (const name of [
      'value',
      'valid',
      'val',
      'test',
      'testing',
      'validity',
      'latest',
      'interval',
      'lr',
      'évaluation',
    ]) {
      expect([name, placeOf(name)]).toEqual([name, { chart: name, set: 'train' }]);
    }
  });
});

describe('the legend of a chart', () => {
  const series = (name: string, set: string, run = 'this') => ({
    name,
    set,
    run,
    x: [0, 1],
    y: [1, null],
    bad: [],
  });
  const labels = (...all: ReturnType<typeof series>[]) => all.map((each) => labelOf(each, all));

  it('names curves by their sets, and by the metric where that is not enough', () => {
    expect(labels(series('lr', 'train'))).toEqual(['lr']);
    expect(labels(series('loss', 'train'), series('valLoss', 'validation'))).toEqual(['train', 'validation']);
    expect(labels(series('valLoss', 'validation'))).toEqual(['validation']);
    expect(labels(series('loss', 'train'), series('trainLoss', 'train'))).toEqual(['loss', 'trainLoss']);
    expect(labels(series('valLoss', 'validation'), series('val_loss', 'validation'))).toEqual([
      'valLoss',
      'val_loss',
    ]);
    expect(labels(series('lr', 'train'), series('lr', 'train', 'other'))).toEqual(['lr', 'lr, other run']);
  });

  it('has a dash where a curve has no value', () => {
    expect([-1, 0, 1].map((at) => valueText(series('lr', 'train'), at))).toEqual(['–', '1', '–']);
    const bad = [{ from: 1, to: 1, value: 'NaN', rank: 0, isOpen: true }];
    expect(valueText({ ...series('lr', 'train'), bad }, 1)).toBe('NaN');
  });
});

describe('smoothing', () => {
  it('starts at the first value, keeps constants and gaps, and comes to a mean', () => {
    expect(smoothed([4, 4, null, 4], 0.9)).toEqual(
      [4, 4, null, 4].map((v) => (v === null ? null : expect.closeTo(v))),
    );
    const [first, second] = smoothed([0, 1], 0.5) as number[];
    expect([first, second]).toEqual([0, expect.closeTo(2 / 3)]);
    const waves = Array.from({ length: 400 }, (_, i) => (i % 2 === 0 ? 1 : 3));
    expect(smoothed(waves, 0.98).at(-1)).toBeCloseTo(2, 1);
    expect(smoothed([], 0.5)).toEqual([]);
  });
});

describe('values that are no numbers', () => {
  const run = { from: 61, to: 61, value: 'NaN', rank: 1, isOpen: true };

  it('have a sentence', () => {
    expect(badText([])).toBe(null);
    expect(badText([run])).toBe('NaN since step 61, first on rank 1');
    expect(badText([{ ...run, isOpen: false }])).toBe('NaN at step 61, first on rank 1');
    const range = { from: 1000, to: 1002, value: '-Infinity', rank: 0, isOpen: false };
    expect(badText([run, range])).toBe('-infinity from step 1,000 to 1,002, first on rank 0; in 2 places');
  });
});
