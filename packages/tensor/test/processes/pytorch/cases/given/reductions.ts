// Cases of reductions that are the same for every seed.
import { type Cases, f32, i64, one, ramp, same, twice } from './makers.ts';

/** Returns cases of variance, std or varMean. */
const spread = (op: string) => [
  ...twice(op),
  one(op, (d) => [f32(d, same(6, 0.5), [2, 3]), 1]),
  one(op, (d) => [f32(d, [1, 2, 4]), [], { correction: 1 }]),
  one(op, (d) => [f32(d, [1])]),
  one(op, (d) => [f32(d, [1, 2]), [], { correction: 2 }]),
];

export const reductions: Cases = {
  std: spread('std'),
  variance: spread('variance'),
  varMean: [...spread('varMean'), one('varMean', (d) => [f32(d, ['inf', 1])])],
  cosineSimilarity: [
    one('cosineSimilarity', (d) => [f32(d, [0, 0, 1, 2], [2, 2]), f32(d, [1, 2, 3, 4], [2, 2])]),
    one('cosineSimilarity', (d) => [ramp(d, [3, 2, 2]), ramp(d, [2, 2]), 2]),
    one('cosineSimilarity', (d) => [ramp(d, [2, 3]), f32(d, [2], [1, 1]), 1]),
  ],
  cummax: [one('cummax', (d) => [f32(d, [], [0, 2]), 5])],
  cummin: [one('cummin', (d) => [f32(d, [], [0, 2]), 5])],
  nanmedian: [one('nanmedian', (d) => [i64(d, [], [0])])],
  sum: [...twice('sum'), one('sum', (d) => [ramp(d, [2, 3]), []])],
  mean: [...twice('mean'), one('mean', (d) => [ramp(d, [2, 3]), []])],
  prod: [
    ...twice('prod'),
    one('prod', (d) => [f32(d, ['nan', 2, 0, 3], [2, 2]), 1]),
    one('prod', (d) => [f32(d, ['inf', 2, 0, 3], [2, 2]), [1, 0]]),
  ],
  max: [
    ...twice('max'),
    one('max', (d) => [f32(d, [1, 'nan', 2, 2], [2, 2]), 1]),
    one('max', (d) => [f32(d, [1, 'nan', 2, 'nan'])]),
  ],
  min: [...twice('min'), one('min', (d) => [f32(d, [1, 'nan', 2, 'nan'])])],
  any: [...twice('any'), one('any', (d) => [d.given([0, 2], [2], 'uint8')])],
  all: [...twice('all'), one('all', (d) => [d.given([0, 2], [2], 'uint8')])],
  norm: [
    ...twice('norm'),
    one('norm', (d) => [f32(d, [0, 2, 0, -3], [2, 2]), 1, { p: 0 }]),
    one('norm', (d) => [f32(d, [0, 2, 1, -3], [2, 2]), 1, { p: { $: '-inf' } }]),
    one('norm', (d) => [f32(d, [0, 0, 1, 'inf'], [2, 2]), 1, { p: 3 }]),
  ],
  logSumExp: [
    ...twice('logSumExp'),
    one('logSumExp', (d) => [f32(d, [], [2, 0]), 1]),
    one('logSumExp', (d) => [f32(d, ['-inf', '-inf', 1, 'inf'], [2, 2]), 1]),
    one('logSumExp', (d) => [ramp(d, [2, 3]), []]),
  ],
};
