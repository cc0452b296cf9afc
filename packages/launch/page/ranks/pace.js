// Which ranks are slow. Ranks of one job end each step together, so their step times are equal: the slow one is the
// one that waits least for the others.

import { byteText, msText } from '../format.js';

/** Returns the time of a step that the rank does not spend waiting for gradients; null if unknown. */
export function ownMs({ stepMs, waitMs }) {
  return stepMs === null ? null : Math.max(0, stepMs - (waitMs ?? 0));
}

/** What cells of the strip show. `level` is from 0 (as the others) to 4 (far off). */
export const measures = {
  own: { of: ownMs, text: msText, level: aboveMedian, most: 'Slowest' },
  behind: {
    of: ({ behind }) => behind,
    text: (steps) => `${steps} step${steps === 1 ? '' : 's'} behind`,
    level: (value) => Math.min(4, value),
    most: 'Last',
  },
  memory: { of: ({ memoryBytes }) => memoryBytes, text: byteText, level: aboveMedian, most: 'Largest' },
};

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

function aboveMedian(value, middle) {
  const excess = middle > 0 ? value / middle - 1 : 0;
  return [0.05, 0.15, 0.3, 0.6].filter((limit) => excess >= limit).length;
}

/** Returns value and level of each rank, and a sentence about the one that stands out. */
export function compared(ranks, name) {
  const { of, text, level, most } = measures[name];
  const known = ranks
    .map((rank) => ({ rank: rank.rank, value: of(rank) }))
    .filter(({ value }) => value !== null);
  if (known.length === 0) return { cells: new Map(), sentence: 'Not known yet.' };
  const middle = median(known.map(({ value }) => value));
  const cells = new Map(
    known.map(({ rank, value }) => [rank, { text: text(value), level: level(value, middle) }]),
  );
  const top = known.reduce((a, b) => (b.value > a.value ? b : a));
  return { cells, sentence: sentenceOf(name, known.length, top, middle, text, most) };
}

function sentenceOf(name, count, top, middle, text, most) {
  if (count === 1) return `Rank ${top.rank}: ${text(top.value)}.`;
  if (name === 'behind') {
    return top.value > 0
      ? `${most}: rank ${top.rank}, ${text(top.value)}.`
      : 'All ranks are at the same step.';
  }
  const percent = middle > 0 ? Math.round(100 * (top.value / middle - 1)) : 0;
  if (percent < 5) return `All ranks are at most 5 % above the median of ${text(middle)}.`;
  return `${most}: rank ${top.rank} with ${text(top.value)}, ${percent} % above the median of ${text(middle)}.`;
}

/** Sorts ranks by `key`, unknown values last. Ranks with equal values stay in the order of their numbers. */
export function sorted(ranks, key, isDescending) {
  const sign = isDescending ? -1 : 1;
  return [...ranks].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === null || y === null) return (x === null) - (y === null) || a.rank - b.rank;
    return sign * (typeof x === 'string' ? x.localeCompare(y) : x - y) || a.rank - b.rank;
  });
}
