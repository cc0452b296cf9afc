// Draws numbers for inputs by domain. Except for those of a range [low, high], each is exact in its dtype.
import type { DType } from '../../../src/index.ts';
import type { Draws } from './draws.ts';

/**
 * The numbers that inputs may have. For floats, 'real': within ±3; 'coarse': multiples of ½ within ±2, often alike,
 * often 0; 'special': real, with NaN, infinities and ±0; 'any': one of these three; 'finite': real or coarse;
 * 'positive': 0.125 … 3; 'share': 0 … 1, both included. For integers, 'positive' is 1 … 6, 'share' is 0 or 1, and the
 * others are mostly small numbers. 'distinct': integers of which no two are alike, except for bool. [low, high]:
 * integers in that range, for every dtype. Bool is 0 or 1 otherwise.
 */
export type Domain =
  | 'any'
  | 'real'
  | 'coarse'
  | 'special'
  | 'positive'
  | 'share'
  | 'distinct'
  | 'finite'
  | readonly [low: number, high: number];

type Drawn = number | string;

export function drawValues(draws: Draws, count: number, dtype: DType, domain: Domain): Drawn[] {
  if (typeof domain !== 'string') return Array.from({ length: count }, () => draws.int(domain[0], domain[1]));
  if (domain === 'distinct') return distinct(draws, count, dtype);
  const isInteger = dtype === 'int32' || dtype === 'int64' || dtype === 'uint8';
  if (dtype === 'bool') return Array.from({ length: count }, () => draws.int(0, 1));
  if (isInteger) return Array.from({ length: count }, () => integer(draws, dtype, domain));
  const at = draws.uniform();
  const own =
    domain === 'finite'
      ? at < 0.6
        ? 'real'
        : 'coarse'
      : domain !== 'any'
        ? domain
        : at < 0.5
          ? 'real'
          : at < 0.75
            ? 'coarse'
            : 'special';
  const isFine = dtype === 'float32' || dtype === 'float64';
  return Array.from({ length: count }, () => real(draws, own, dtype, isFine));
}

function distinct(draws: Draws, count: number, dtype: DType): number[] {
  const from = dtype === 'uint8' ? 0 : -Math.floor(count / 2);
  return draws.shuffled(Array.from({ length: count }, (_, i) => (dtype === 'bool' ? i % 2 : from + i)));
}

function integer(draws: Draws, dtype: DType, domain: Domain): Drawn {
  if (domain === 'positive') return draws.int(1, 6);
  if (domain === 'share') return draws.int(0, 1);
  if (dtype === 'uint8') return draws.chance(0.1) ? draws.int(250, 255) : draws.int(0, 6);
  if (dtype === 'int64' && domain === 'any' && draws.chance(0.04))
    return draws.pick(['9007199254740993', '-4611686018427387905']);
  return draws.int(-5, 5);
}

function real(draws: Draws, domain: string, dtype: DType, isFine: boolean): Drawn {
  if (domain === 'special' && draws.chance(0.3)) return draws.pick(['nan', 'inf', '-inf', '-0', 0]);
  if (domain === 'coarse') return draws.int(-4, 4) / 2 + 0;
  const [low, high] = domain === 'positive' ? [0.125, 3] : domain === 'share' ? [0, 1] : [-3, 3];
  if (domain === 'share' && draws.chance(0.1)) return draws.int(0, 1);
  const value = low + draws.uniform() * (high - low);
  // A sixteenth is exact in bfloat16 below 4.
  if (!isFine) return Math.max(low, Math.round(value * 16) / 16) + 0;
  return dtype === 'float32' ? Math.fround(value) : value;
}
