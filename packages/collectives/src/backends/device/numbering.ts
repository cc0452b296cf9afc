// Sequence numbers of operations that are split into pieces. The native group counts each piece as an
// operation; this file maps between the group's numbers and the native ones, and merges the flight record's
// entries per operation.
import type { Operation } from '../../backend.ts';
import { byteSize } from '../../dtype.ts';
import type { FlightEntry } from '../../flight/entry.ts';
import { lengthOf } from '../../flight/recorder.ts';

/** An operation of more than one piece. */
interface Split {
  /** Native sequence number of its first piece. */
  readonly first: number;
  readonly pieces: number;
  /** Sum over all earlier operations of their pieces beyond the first. */
  readonly extra: number;
  readonly count: number;
  readonly bytes: number;
  /** True if the operation has failed; some of its pieces may then never have started. */
  hasFailed: boolean;
}

/**
 * Number of splits to remember. Each has at least two pieces, so this covers more than the native flight
 * record holds.
 */
const kept = 1024;

const isMessage = ({ verb }: Pick<FlightEntry, 'verb'>): boolean => verb === 'send' || verb === 'recv';

export class Numbering {
  /** Sum over all operations so far of their pieces beyond the first. The same on all ranks. */
  #extra = 0;
  /** The last splits, oldest first. */
  readonly #splits: Split[] = [];

  /** True if native sequence numbers still equal those of the group. */
  get isSame(): boolean {
    return this.#extra === 0;
  }

  /** Returns the next collective with its native sequence number. */
  numbered<O extends Operation>(operation: O): O {
    return this.#extra === 0 ? operation : { ...operation, seq: operation.seq + this.#extra };
  }

  /**
   * Reserves native sequence numbers for the pieces of the next collective. Returns the first one, and a
   * function to call if the operation fails.
   */
  take(operation: Operation, pieces: number): { readonly first: number; readonly failed: () => void } {
    const first = operation.seq + this.#extra;
    if (pieces === 1) return { first, failed: () => {} };
    const { dtype, count } = lengthOf(operation);
    const bytes = dtype === null ? 0 : count * byteSize(dtype);
    const split: Split = { first, pieces, extra: this.#extra, count, bytes, hasFailed: false };
    this.#splits.push(split);
    if (this.#splits.length > kept) this.#splits.shift();
    this.#extra += pieces - 1;
    return {
      first,
      failed: () => {
        split.hasFailed = true;
      },
    };
  }

  /**
   * Returns the record with one entry for each operation instead of each piece. Leaves out an operation whose
   * first piece is no longer in the record.
   */
  byOperation(record: readonly FlightEntry[]): readonly FlightEntry[] {
    if (this.#splits.length === 0) return record;
    const first = record.find((entry) => !isMessage(entry));
    let before = this.#extraBefore(first?.seq ?? Infinity);
    const entries: FlightEntry[] = [];
    const pieces = new Map<Split, FlightEntry[]>();
    for (const entry of record) {
      if (isMessage(entry)) {
        entries.push({ ...entry, number: entry.number - before });
        continue;
      }
      const { seq } = entry;
      const split = this.#splitAt(seq);
      before = this.#extraBefore(seq);
      const renumbered = { ...entry, number: entry.number - before, seq: seq - before };
      if (split === undefined || seq >= split.first + split.pieces) {
        entries.push(renumbered);
      } else if (seq === split.first) {
        entries.push(renumbered);
        pieces.set(split, [entry]);
      } else {
        pieces.get(split)?.push(entry);
      }
      before = this.#extraBefore(seq + 1);
    }
    const wholes = new Map(
      [...pieces].map(([split, parts]) => [split.first - split.extra, wholeOf(split, parts)]),
    );
    return entries.map((entry) => (isMessage(entry) ? entry : { ...entry, ...wholes.get(entry.seq) }));
  }

  /** Returns the last split that begins at or before that native number. */
  #splitAt(seq: number): Split | undefined {
    return this.#splits.findLast(({ first }) => first <= seq);
  }

  /** Returns how many native numbers before that one belong to pieces beyond the first of their operation. */
  #extraBefore(seq: number): number {
    const split = this.#splitAt(seq);
    if (split === undefined) return this.#splits[0]?.extra ?? 0;
    return split.extra + Math.max(0, Math.min(seq - split.first, split.pieces) - 1);
  }
}

/**
 * Returns the merged length, state and end time of an operation from the entries of its pieces that have
 * started.
 */
function wholeOf(
  { count, bytes, pieces, hasFailed }: Split,
  parts: readonly FlightEntry[],
): Partial<FlightEntry> {
  const ends = parts.flatMap(({ endedMs }) => endedMs ?? []);
  const isFailed = hasFailed || parts.some(({ state }) => state === 'failed');
  const isOver = ends.length === parts.length && (isFailed || parts.length === pieces);
  if (isOver) return { count, bytes, state: isFailed ? 'failed' : 'done', endedMs: Math.max(...ends) };
  const state = parts[0]!.state === 'queued' ? 'queued' : 'running';
  return { count, bytes, state, endedMs: null };
}
