import { outOfRange } from '../errors.ts';
import { checkedOptions, optionNames } from '../options.ts';
import { isTypedArray, type TypedArray } from '../typed-array.ts';

/** Options of normalize(). */
export interface NormalizeOptions {
  /** Factor, applied first. Default 1 / 255, which maps bytes to 0 … 1. */
  readonly scale?: number;
  /** Mean of the scaled values. Default 0. */
  readonly mean?: number;
  /** Standard deviation of the scaled values. Default 1. */
  readonly std?: number;
}

const names = optionNames<NormalizeOptions>({ scale: true, mean: true, std: true });

/**
 * Returns (x · scale − mean) / std for every element x, in new memory. Call it once before training, for example on
 * the bytes of all images.
 */
export function normalize(
  data: Exclude<TypedArray, BigInt64Array | BigUint64Array>,
  options?: NormalizeOptions,
): Float32Array {
  const { scale = 1 / 255, mean = 0, std = 1 } = checkedOptions('normalize', options, names);
  for (const [name, value] of Object.entries({ scale, mean, std }))
    if (!Number.isFinite(value)) throw outOfRange(`normalize: ${name}`, 'a finite number', value);
  if (!(std > 0)) throw outOfRange('normalize: std', 'a number above 0', std);
  if (!isTypedArray(data) || typeof data[0] === 'bigint')
    throw outOfRange('normalize: data', 'a typed array of numbers', data);
  const factor = scale / std;
  const offset = -mean / std;
  const normal = new Float32Array(data.length);
  for (let i = 0; i < data.length; i++) normal[i] = data[i]! * factor + offset;
  return normal;
}
