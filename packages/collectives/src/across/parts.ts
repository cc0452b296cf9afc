// The parts of ranks along one dimension of a tensor.
import type { Differentiable } from './autograd.ts';
import type { Call } from './call.ts';
import { badDim, badSizes, unevenDim } from './errors.ts';
import type { DimOptions } from './options.ts';

/** The parts of all ranks along a dimension. */
export interface Parts {
  /** The dimension, not negative. */
  readonly dim: number;
  /** Sum of the lengths. */
  readonly whole: number;
  /** Where this rank's part begins. */
  readonly from: number;
  /** Length of this rank's part. */
  readonly own: number;
  /** Sizes of the other dimensions, in order. */
  readonly others: readonly number[];
  /** The option `counts` of a verb of the group: elements of each part. */
  readonly counts: { readonly counts?: readonly number[] };
}

const sumOf = (lengths: readonly number[]): number => lengths.reduce((sum, length) => sum + length, 0);

/** Returns the index of a dimension of the call's tensor. */
export function dimOf<T extends Differentiable>(call: Call<T>, name: string, dim: unknown): number {
  const rank = call.shape.length;
  const isDim = Number.isInteger(dim) && (dim as number) >= -rank && (dim as number) < rank;
  if (!isDim) throw call.error(badDim(call.verb, name, dim, rank));
  return (dim as number) < 0 ? (dim as number) + rank : (dim as number);
}

/** Checks a list of lengths and returns it. `fits` compares it with this rank's tensor. */
export function checkedSizes<T extends Differentiable>(
  call: Call<T>,
  name: string,
  sizes: unknown,
  own: string,
  fits: (sizes: readonly number[]) => boolean,
): readonly number[] {
  const { size } = call.group;
  const isList =
    Array.isArray(sizes) &&
    sizes.length === size &&
    sizes.every((length) => Number.isSafeInteger(length) && length >= 0);
  if (!isList || !fits(sizes)) throw call.error(badSizes(call.verb, name, size, own, sizes));
  return sizes;
}

/**
 * Returns the parts along a dimension of the call's tensor. With `has` 'whole' that tensor is the whole, otherwise this
 * rank's part.
 */
export function partsOf<T extends Differentiable>(
  call: Call<T>,
  has: 'whole' | 'part',
  { dim: given = 0, sizes }: Pick<DimOptions, 'dim' | 'sizes'>,
): Parts {
  const { size, rank } = call.group;
  const dim = dimOf(call, 'dim', given);
  const { shape } = call;
  const length = shape[dim]!;
  const others = shape.filter((_, index) => index !== dim);
  if (sizes === undefined) {
    if (has === 'whole' && length % size !== 0)
      throw call.error(unevenDim(call.verb, dim, length, size, 'sizes'));
    const own = has === 'whole' ? length / size : length;
    return { dim, whole: own * size, from: own * rank, own, others, counts: {} };
  }
  const isWhole = has === 'whole';
  const expected = isWhole ? `together ${length}` : `this rank's being ${length}`;
  const list = checkedSizes(call, 'sizes', sizes, expected, (all) =>
    isWhole ? sumOf(all) === length : all[rank] === length,
  );
  const rest = others.reduce((product, each) => product * each, 1);
  return {
    dim,
    whole: sumOf(list),
    from: sumOf(list.slice(0, rank)),
    own: list[rank]!,
    others,
    counts: { counts: list.map((each) => each * rest) },
  };
}
