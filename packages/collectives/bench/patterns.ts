// Contents of the buffers with known answers: small integers that repeat with a short period and are exact in
// every dtype and any order of summation. Filling and comparing work on tiles instead of single elements, for
// speed.

import { encode, inputPattern, type Pattern, reducedPattern } from '../contract/inputs.ts';
import type { DType } from '../src/dtype.ts';
import { type ArrayOf, allocHost, type BufferView, elementsOf } from '../src/group/buffer.ts';
import type { ReduceOp } from '../src/reduce-ops.ts';

/** Contents of one part of a buffer. */
export type Part =
  /** This rank's contribution to part `part` of a reduction. */
  | { readonly kind: 'term'; readonly part: number }
  /** Part `part` of the reduction over all ranks. */
  | { readonly kind: 'reduced'; readonly part: number }
  /** Data that is only moved; each `id` is different. */
  | { readonly kind: 'message'; readonly id: number };

export interface Contents {
  readonly rank: number;
  readonly size: number;
  readonly op: ReduceOp;
}

type Elements = ArrayOf<DType>;

/** Writes the contents of the parts, one after the other. */
export function fill(view: BufferView, parts: readonly Part[], contents: Contents): void {
  for (const { elements, tile } of tiled(view, parts, contents)) {
    elements.set(tile.subarray(0, elements.length) as never);
    for (let done = tile.length; done < elements.length; done *= 2) elements.copyWithin(done, 0, done);
  }
}

/** Returns how many elements differ from the parts' contents. */
export function countWrong(view: BufferView, parts: readonly Part[], contents: Contents): number {
  let wrong = 0;
  for (const { elements, tile } of tiled(view, parts, contents)) {
    for (let at = 0; at < elements.length; at += tile.length) {
      const piece = elements.subarray(at, at + tile.length);
      const right = tile.subarray(0, piece.length);
      if (Buffer.compare(bytesOf(piece), bytesOf(right)) === 0) continue;
      for (let i = 0; i < piece.length; i++) if (piece[i] !== right[i]) wrong++;
    }
  }
  return wrong;
}

/** Sets every byte of the buffer. */
export function overwrite(view: BufferView, byte: number): void {
  bytesOf(elementsOf(view)).fill(byte);
}

/** Yields the elements of each part with a tile of their expected contents. */
function* tiled(view: BufferView, parts: readonly Part[], contents: Contents) {
  const count = view.count / parts.length;
  for (const [index, part] of parts.entries()) {
    const elements = elementsOf(view).subarray(index * count, (index + 1) * count) as Elements;
    yield { elements, tile: tileOf(view.dtype, part, count, contents) };
  }
}

function tileOf(dtype: DType, part: Part, count: number, contents: Contents): Elements {
  const pattern = patternOf(dtype, part, contents);
  const from = part.kind === 'message' ? 0 : part.part * count;
  // Long enough for a fast comparison, short enough for the cache; a whole number of periods.
  const tile = elementsOf(allocHost(pattern.length * Math.ceil(4096 / pattern.length), dtype));
  for (let i = 0; i < tile.length; i++) tile[i] = pattern[(from + i) % pattern.length] as never;
  return tile;
}

function patternOf(dtype: DType, part: Part, { rank, size, op }: Contents): Pattern {
  switch (part.kind) {
    case 'term':
      return inputPattern(op, dtype, rank, size);
    case 'reduced':
      return reducedPattern(op, dtype, size);
    case 'message':
      return Array.from({ length: period }, (_, i) => encode(dtype, (i * 5 + part.id * 37) % period));
  }
}

// A prime, so that messages whose ids differ by less than this differ in every element (in most, if the dtype has 8-bit
// floats, which round the values).
const period = 101;

function bytesOf({ buffer, byteOffset, byteLength }: Elements): Uint8Array {
  return new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
}
