// Splits the memory of a packed state into chunks. The split is a function of the layout, so that all members compute
// the same one. A chunk has pieces of one or more arrays, and at most `most` bytes.
import { sharesOf } from './shares.ts';

/** Largest chunk in bytes. */
export const largestChunk = 1 << 20;

/** Part of an array: bytes `from` to `to` − 1 of array `array`. */
export interface Piece {
  readonly array: number;
  readonly from: number;
  readonly to: number;
}

export interface Chunk {
  readonly bytes: number;
  readonly pieces: readonly Piece[];
}

/** Returns the chunks of arrays with these sizes in bytes. Empty arrays are in no chunk. */
export function chunksOf(arrays: readonly { readonly bytes: number }[], most = largestChunk): Chunk[] {
  const chunks: Chunk[] = [];
  let pieces: Piece[] = [];
  let filled = 0;
  const end = () => {
    if (filled > 0) chunks.push({ bytes: filled, pieces });
    pieces = [];
    filled = 0;
  };
  for (const [array, { bytes }] of arrays.entries()) {
    for (let from = 0; from < bytes; ) {
      const to = Math.min(bytes, from + most - filled);
      pieces.push({ array, from, to });
      filled += to - from;
      from = to;
      if (filled === most) end();
    }
  }
  end();
  return chunks;
}

/** Divides the chunks among `sources` sources: consecutive ones, about equally many bytes each. */
export const chunksBySource = (chunks: readonly Chunk[], sources: number): Chunk[][] => {
  const sizes = chunks.map(({ bytes }) => bytes);
  return sharesOf(sizes, sources).map((indices) => indices.map((index) => chunks[index]!));
};
