// Errors of recurrent layers, packed sequences and the layers of transformers.
import { argument, type Shape, shapeError, show, TensorError } from '../errors/tensor-error.ts';

export const badSequenceInput = (op: string, expected: string, shape: Shape): TensorError =>
  shapeError(`${op}: expected an input ${expected}, got ${show(shape)}.`);

export const badState = (op: string, name: string, expected: Shape, got: Shape): TensorError =>
  shapeError(`${op}: expected ${name} of shape ${show(expected)}, got ${show(got)}.`);

export const emptySequence = (op: string): TensorError =>
  shapeError(`${op}: expected at least one time step, got 0.`);

export const badStateKind = (op: string, expected: string, got: string): TensorError =>
  argument(`${op}: expected ${expected} as state, got ${got}.`);

export const badLengths = (op: string, expected: string, got: string): TensorError =>
  argument(`${op}: expected lengths ${expected}, got ${got}.`);

export const unsortedLengths = (): TensorError =>
  argument(
    'packPaddedSequence: expected lengths from the longest to the shortest. Sort the batch, or set enforceSorted: false.',
  );

export const notPacked = (op: string, got: string): TensorError =>
  argument(`${op}: expected a packed sequence, which packPaddedSequence makes, got ${got}.`);

export const unevenSequences = (op: string, first: Shape, other: Shape): TensorError =>
  shapeError(
    `${op}: expected sequences that differ in their first dimension only, got ${show(first)} beside ${show(other)}.`,
  );

export const shortTotalLength = (total: number, longest: number): TensorError =>
  argument(
    `padPackedSequence: totalLength ${total} is less than ${longest}, the length of the longest sequence.`,
  );

// Attention and transformers.

export const badMask = (name: string, got: Shape, expected: readonly Shape[]): TensorError =>
  shapeError(
    `MultiheadAttention: expected ${name} of shape ${expected.map(show).join(' or ')}, got ${show(got)}.`,
  );

export const badMaskDtype = (name: string, got: string, dtype: string): TensorError =>
  new TensorError(
    'ERR_TENSOR_DTYPE',
    `MultiheadAttention: expected ${name} of bool or ${dtype}, the dtype of the query, got ${got}.`,
  );

export const causalWithoutMask = (): TensorError =>
  argument(
    'MultiheadAttention: isCausal says what attnMask is, and there is none. Pass Transformer.generateSquareSubsequentMask(length).',
  );

export const badQueryKeyValue = (
  batchFirst: boolean,
  widths: readonly number[],
  q: Shape,
  k: Shape,
  v: Shape,
): TensorError => {
  const lead = (time: string): string => (batchFirst ? `batch, ${time}` : `${time}, batch`);
  return shapeError(
    `MultiheadAttention: expected query [${lead('queries')}, ${widths[0]}], key [${lead('keys')}, ${widths[1]}] and value [${lead('keys')}, ${widths[2]}], or all without batch, got ${show(q)}, ${show(k)}, ${show(v)}.`,
  );
};

export const badTransformerInput = (op: string, name: string, width: number, got: Shape): TensorError =>
  shapeError(`${op}: expected ${name} of 2 or 3 dimensions, the last of size ${width}, got ${show(got)}.`);

export const notALayer = (op: string, expected: string, got: string): TensorError =>
  argument(`${op}: expected a ${expected} as first argument, got ${got}.`);

export const badRotary = (x: Shape, cos: Shape, sin: Shape): TensorError =>
  shapeError(
    `applyRotary: expected x [..., time, width] with an even width, and cos and sin that broadcast to [..., time, width / 2], got ${show(x)}, ${show(cos)}, ${show(sin)}.`,
  );
