// Sequences of different lengths in one tensor: padded to one length, or packed step by step without padding.
import { notTensors } from '../../../checks/argument-errors.ts';
import { checkOptions, optionChecks } from '../../../checks/options.ts';
import {
  badLengths,
  badSequenceInput,
  notPacked,
  shortTotalLength,
  unevenSequences,
  unsortedLengths,
} from '../../../checks/sequence-errors.ts';
import { anyNumber, atLeastOne, flag, oneOf } from '../../../checks/value-checks.ts';
import { scope } from '../../../core/context.ts';
import { full, tensor } from '../../../core/creation.ts';
import { sameShape } from '../../../core/shape.ts';
import { Tensor } from '../../../core/tensor.ts';
import type { Device } from '../../../device/device.ts';
import { shown } from '../../../errors.ts';
import { requireTensor } from '../../../ops/elementwise/convert.ts';
import { cat, indexSelect, narrow, select, stack, transpose } from '../../../ops/index.ts';

/** Sequences without padding, as packPaddedSequence() makes them. Recurrent layers take it and return one. */
export interface PackedSequence {
  /** [sum of all lengths, …]: first step 0 of all sequences, then step 1 of those that have it, and so on. */
  readonly data: Tensor;
  /** Number of sequences in each step. */
  readonly batchSizes: readonly number[];
  /**
   * int64: the index of the sequence at each position, from the longest to the shortest; null if the batch was sorted.
   */
  readonly sortedIndices: Tensor | null;
  /** int64: the position of each sequence of the batch; null if the batch was sorted. */
  readonly unsortedIndices: Tensor | null;
}

export const isPacked = (value: unknown): value is PackedSequence =>
  typeof value === 'object' && value !== null && 'batchSizes' in value && 'data' in value;

/** Options of packPaddedSequence(). */
export interface PackPaddedOptions {
  /** Whether tensors are [batch, time, …] instead of [time, batch, …]. Default false. */
  readonly batchFirst?: boolean;
  /** Whether the batch must be sorted from the longest sequence to the shortest. False sorts it. Default true. */
  readonly enforceSorted?: boolean;
}

const packPaddedOptions = optionChecks<PackPaddedOptions>({ batchFirst: flag, enforceSorted: flag });

/** Returns lengths as numbers, from an array or from a tensor of one dimension in host memory. */
function lengthsOf(op: string, lengths: Tensor | readonly number[]): number[] {
  const own = lengths instanceof Tensor ? Array.from(lengths.dataSync(), Number) : lengths;
  const isList = Array.isArray(own) && (!(lengths instanceof Tensor) || lengths.rank === 1);
  if (!isList) throw badLengths(op, 'as an array or a tensor of one dimension', shown(lengths));
  const wrong = own.find((length) => !Number.isSafeInteger(length) || length < 1);
  if (wrong !== undefined) throw badLengths(op, 'of at least 1', shown(wrong));
  return [...own];
}

/** Returns how many sequences have each step. */
const sizesOf = (lengths: readonly number[], steps: number): number[] =>
  Array.from({ length: steps }, (_, t) => lengths.filter((length) => length > t).length);

const indexOf = (values: readonly number[], device: Device): Tensor =>
  tensor(values, { dtype: 'int64', shape: [values.length], device });

/**
 * Packs padded sequences [time, batch, …] of these lengths. `lengths` is an array, or a tensor in host memory. Throws
 * for lengths below 1 or above the time, and, with enforceSorted, if they grow.
 */
export function packPaddedSequence(
  input: Tensor,
  lengths: Tensor | readonly number[],
  options: PackPaddedOptions = {},
): PackedSequence {
  const op = 'packPaddedSequence';
  requireTensor(op, input);
  checkOptions(op, options, packPaddedOptions);
  const { batchFirst = false, enforceSorted = true } = options;
  const given = lengthsOf(op, lengths);
  if (input.rank < 2) throw badSequenceInput(op, 'of at least 2 dimensions', input.shape);
  const [time, batch] = batchFirst ? [input.shape[1]!, input.shape[0]!] : [input.shape[0]!, input.shape[1]!];
  if (given.length !== batch || batch === 0)
    throw badLengths(op, `for each of the ${batch} sequences`, `${given.length}`);
  const isSorted = given.every((length, i) => i === 0 || length <= given[i - 1]!);
  if (enforceSorted && !isSorted) throw unsortedLengths();
  const order = given.map((_, i) => i);
  if (!enforceSorted) order.sort((a, b) => given[b]! - given[a]!);
  const sorted = order.map((i) => given[i]!);
  if (sorted[0]! > time) throw badLengths(op, `of at most ${time}, the number of steps`, `${sorted[0]}`);
  return scope(() => {
    const { device } = input;
    const sortedIndices = enforceSorted ? null : indexOf(order, device);
    const unsortedIndices = enforceSorted ? null : indexOf(inverse(order), device);
    const byTime = batchFirst ? transpose(input, 0, 1) : input;
    const own = sortedIndices ? indexSelect(byTime, 1, sortedIndices) : byTime;
    const batchSizes = sizesOf(sorted, sorted[0]!);
    const data = cat(batchSizes.map((size, t) => narrow(select(own, 0, t), 0, 0, size)));
    return { data, batchSizes, sortedIndices, unsortedIndices };
  });
}

function inverse(order: readonly number[]): number[] {
  const out = [...order];
  for (const [at, i] of order.entries()) out[i] = at;
  return out;
}

/** Options of padPackedSequence(). */
export interface PadPackedOptions {
  /** Whether the result is [batch, time, …] instead of [time, batch, …]. Default false. */
  readonly batchFirst?: boolean;
  /** The value behind the end of shorter sequences. Default 0. */
  readonly paddingValue?: number;
  /** Number of steps of the result. Default: the length of the longest sequence. */
  readonly totalLength?: number;
}

const padPackedOptions = optionChecks<PadPackedOptions>({
  batchFirst: flag,
  paddingValue: anyNumber,
  totalLength: atLeastOne,
});

/** Returns the sequences padded to one length, in the order before packing, and their lengths as int64. */
export function padPackedSequence(
  sequence: PackedSequence,
  options: PadPackedOptions = {},
): [padded: Tensor, lengths: Tensor] {
  const op = 'padPackedSequence';
  if (!isPacked(sequence)) throw notPacked(op, shown(sequence));
  checkOptions(op, options, padPackedOptions);
  const { data, batchSizes, unsortedIndices } = sequence;
  const { batchFirst = false, paddingValue = 0, totalLength = batchSizes.length } = options;
  if (totalLength < batchSizes.length) throw shortTotalLength(totalLength, batchSizes.length);
  return scope(() => {
    const batch = batchSizes[0]!;
    const rest = data.shape.slice(1);
    let row = 0;
    const steps = batchSizes.map((size) => {
      const own = narrow(data, 0, row, size);
      row += size;
      return size === batch ? own : cat([own, padding([batch - size, ...rest])]);
    });
    const stacked = stack(steps, 0);
    const missing = totalLength - steps.length;
    const padded = missing > 0 ? cat([stacked, padding([missing, batch, ...rest])]) : stacked;
    const own = unsortedIndices ? indexSelect(padded, 1, unsortedIndices) : padded;
    const sorted = Array.from({ length: batch }, (_, i) => batchSizes.filter((size) => size > i).length);
    const order = unsortedIndices ? Array.from(unsortedIndices.to('cpu').dataSync(), Number) : null;
    const lengths = indexOf(order ? order.map((at) => sorted[at]!) : sorted, 'cpu');
    return [batchFirst ? transpose(own, 0, 1) : own, lengths];
  });

  function padding(shape: readonly number[]): Tensor {
    return full(shape, paddingValue, { dtype: data.dtype, device: data.device });
  }
}

/** Options of padSequence(). */
export interface PadSequenceOptions {
  /** Whether the result is [batch, time, …] instead of [time, batch, …]. Default false. */
  readonly batchFirst?: boolean;
  /** Default 0. */
  readonly paddingValue?: number;
  /** Where the padding goes. Default 'right', behind the end. */
  readonly paddingSide?: 'left' | 'right';
}

const padSequenceOptions = optionChecks<PadSequenceOptions>({
  batchFirst: flag,
  paddingValue: anyNumber,
  paddingSide: oneOf('left', 'right'),
});

function checkSequences(op: string, sequences: readonly Tensor[]): void {
  if (!Array.isArray(sequences) || sequences.length === 0) throw notTensors(op, sequences);
  for (const one of sequences) requireTensor(op, one);
  const first = sequences[0]!.shape;
  const odd = sequences.find(({ shape }) => shape.length === 0 || !sameShape(shape.slice(1), first.slice(1)));
  if (odd) throw unevenSequences(op, first, odd.shape);
}

/** Stacks sequences [time, …] of different lengths, padded to the longest: [time, batch, …]. */
export function padSequence(sequences: readonly Tensor[], options: PadSequenceOptions = {}): Tensor {
  const op = 'padSequence';
  checkSequences(op, sequences);
  checkOptions(op, options, padSequenceOptions);
  const { batchFirst = false, paddingValue = 0, paddingSide = 'right' } = options;
  const longest = sequences.reduce((most, { shape }) => Math.max(most, shape[0]!), 0);
  return scope(() => {
    const padded = sequences.map((one) => {
      const { shape, dtype, device } = one;
      if (shape[0] === longest) return one;
      const rest = full([longest - shape[0]!, ...shape.slice(1)], paddingValue, { dtype, device });
      return cat(paddingSide === 'right' ? [one, rest] : [rest, one]);
    });
    return stack(padded, batchFirst ? 0 : 1);
  });
}

/** Packs sequences [time, …] of different lengths. See packPaddedSequence(). */
export function packSequence(
  sequences: readonly Tensor[],
  options: Pick<PackPaddedOptions, 'enforceSorted'> = {},
): PackedSequence {
  checkSequences('packSequence', sequences);
  checkOptions('packSequence', options, packSequenceOptions);
  const lengths = sequences.map(({ shape }) => shape[0]!);
  return scope(() => packPaddedSequence(padSequence(sequences), lengths, options));
}
const packSequenceOptions = optionChecks<Pick<PackPaddedOptions, 'enforceSorted'>>({ enforceSorted: flag });
