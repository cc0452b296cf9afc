// Errors of functions that make, rearrange or search arrays.
import { argument, type Shape, shapeError, show, type TensorError } from '../errors/tensor-error.ts';

export const contractedSizes = (op: string, a: Shape, b: Shape): TensorError =>
  shapeError(
    `${op}: the shapes ${show(a)} and ${show(b)} do not fit${op === 'cross' ? '; vectors of 3 elements are needed' : ''}.`,
  );

export const sameDimTwice = (op: string, dim1: number, dim2: number): TensorError =>
  shapeError(`${op}: expected two different dimensions, got ${dim1} and ${dim2}.`);

export const unevenSplit = (op: string, dim: number, size: number, sections: number): TensorError =>
  shapeError(
    `${op}: dimension ${dim} has size ${size}, which is no multiple of ${sections}. Use tensorSplit, whose parts may differ by one.`,
  );

export const unequalMoves = (from: number, to: number): TensorError =>
  shapeError(`movedim: expected as many destinations as sources, got ${to} and ${from}.`);

export const negativeRepeats = (count: number): TensorError =>
  argument(`repeatInterleave: expected numbers of repeats ≥ 0, got ${count}.`);

export const sorterShape = (sorted: Shape, sorter: Shape): TensorError =>
  shapeError(
    `searchsorted: expected a sorter of shape ${show(sorted)}, that of the sequence, got ${show(sorter)}.`,
  );

export const fewerThanMask = (needed: number, count: number): TensorError =>
  shapeError(
    `maskedScatter: expected a source with at least ${needed} elements, one for each true element of the mask, got ${count}.`,
  );

export const badBilinear = (x1: Shape, x2: Shape, w: Shape, b: Shape | null): TensorError =>
  shapeError(
    `bilinear: expected x1 [..., in1], x2 [..., in2], w [out, in1, in2] and b [out], got ${show(x1)}, ${show(x2)}, ${show(w)}, ${b ? show(b) : 'null'}.`,
  );

export const badBags = (expected: string, shape: Shape): TensorError =>
  shapeError(`embeddingBag: expected ${expected}, got shape ${show(shape)}.`);

export const badBagWeights = (weights: Shape, index: Shape): TensorError =>
  shapeError(
    `embeddingBag: expected perSampleWeights of shape ${show(index)}, that of the index, got ${show(weights)}.`,
  );
