// Reduces this rank's region of the vector, piece by piece, in rank order. A piece is reduced once it has arrived from
// all ranks. A rank may be only a few pieces ahead of the slowest one, so the memory for received terms does not grow
// with the vector.

import { byteSize } from '../../dtype.ts';
import { allocHost, type BufferView, elementsOf } from '../../group/buffer.ts';
import type { ReduceOp } from '../../reduce-ops.ts';
import { reduce, write } from '../arithmetic/arithmetic.ts';
import { bytesOf, type Combination, partOf } from './plan.ts';

/** Bytes of a piece: the unit of reduction, and the largest payload of a frame. */
export const pieceBytes = 128 * 1024;
/** Number of pieces that one rank may be ahead of the reduction. */
const piecesAhead = 4;

/** A reduction, or null to forward the only term unchanged. */
export type Reduction = { readonly op: ReduceOp; readonly factor: (rank: number) => number } | null;

interface Term {
  readonly rank: number;
  /** Ring of buffers for the last received pieces: piece p is at index p modulo the length. */
  readonly pieces: readonly BufferView[];
  /** Bytes received. */
  got: number;
}

export class Combiner {
  readonly #combination: Combination;
  readonly #reduction: Reduction;
  readonly #own: number;
  readonly #pieceCount: number;
  readonly #elementBytes: number;
  readonly #terms = new Map<number, Term>();
  /** Number of elements that have been reduced. */
  #done = 0;

  /** `dtype` is the element type of the vector, `own` is this rank. */
  constructor(combination: Combination, dtype: BufferView['dtype'], own: number, reduction: Reduction) {
    this.#combination = combination;
    this.#reduction = reduction;
    this.#own = own;
    this.#elementBytes = byteSize(dtype);
    this.#pieceCount = pieceBytes / this.#elementBytes;
    const { terms, count } = combination;
    const ringLength = Math.min(piecesAhead, Math.ceil(count / this.#pieceCount));
    for (const rank of terms) {
      if (rank === own) continue;
      const pieces = Array.from({ length: ringLength }, () =>
        allocHost(Math.min(count, this.#pieceCount), dtype),
      );
      this.#terms.set(rank, { rank, pieces, got: 0 });
    }
  }

  get isDone(): boolean {
    return this.#done === this.#combination.count;
  }

  /** Ranks whose terms have not arrived completely. */
  get missing(): number[] {
    const bytes = this.#combination.count * this.#elementBytes;
    return [...this.#terms.values()].flatMap(({ rank, got }) => (got < bytes ? [rank] : []));
  }

  /**
   * Receives bytes of a rank's term. Returns how many it accepted: fewer than all if the rank is too far ahead, or -1
   * if these bytes do not belong to the operation.
   */
  accept(rank: number, bytes: Uint8Array): number {
    const term = this.#terms.get(rank);
    const total = this.#combination.count * this.#elementBytes;
    if (term === undefined || term.got + bytes.length > total) return -1;
    let taken = 0;
    while (taken < bytes.length) {
      const piece = Math.floor(term.got / pieceBytes);
      if (piece >= this.#done / this.#pieceCount + term.pieces.length) break;
      const from = term.got % pieceBytes;
      const length = Math.min(bytes.length - taken, pieceBytes - from);
      const buffer = bytesOf(term.pieces[piece % term.pieces.length]!);
      buffer.set(bytes.subarray(taken, taken + length), from);
      taken += length;
      term.got += length;
    }
    return taken;
  }

  /** Reduces all pieces that are complete. Yields each result, which the caller sends to the ranks that need it. */
  *combine(): Generator<Uint8Array> {
    const { count } = this.#combination;
    while (this.#done < count) {
      const length = Math.min(this.#pieceCount, count - this.#done);
      const end = (this.#done + length) * this.#elementBytes;
      for (const { got } of this.#terms.values()) if (got < end) return;
      const result = this.#combinePiece(this.#done / this.#pieceCount, length);
      this.#done += length;
      yield result;
    }
  }

  #combinePiece(piece: number, length: number): Uint8Array {
    const { own, result, terms } = this.#combination;
    const here = (view: BufferView) => partOf(view, this.#done, length);
    const buffers = terms.map((rank) => {
      const { pieces } = this.#terms.get(rank) ?? {};
      return pieces === undefined ? here(own!) : partOf(pieces[piece % pieces.length]!, 0, length);
    });
    const target = result === null ? null : here(result);
    if (this.#reduction === null) {
      const [only] = buffers as [BufferView];
      if (terms[0] !== this.#own && target !== null) write(target, elementsOf(only));
      // The buffer of the piece is reused later; the target is not.
      return bytesOf(target ?? only);
    }
    const { op, factor } = this.#reduction;
    const values = reduce(
      op,
      buffers.map((buffer, index) => ({ buffer, factor: factor(terms[index]!) })),
    );
    if (target === null) return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    write(target, values);
    return bytesOf(target);
  }
}
