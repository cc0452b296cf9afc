// Operations that the native group gets in several pieces, each of which it counts: the numbers that they have there, and its
// flight record by the operations of the group.
import type { Operation } from '../../backend.ts';
import { byteSize } from '../../dtype.ts';
import type { FlightEntry } from '../../flight/entry.ts';
import { lengthOf } from '../../flight/recorder.ts';

/** An operation of more than one piece. */
interface Split {
  /** Number of its first piece. */
  readonly first: number;
  readonly pieces: number;
  /** How many pieces beyond one for each operation there were before it. */
  readonly extra: number;
  readonly count: number;
  readonly bytes: number;
  /** It is over, and some of its pieces may never have begun. */
  hasFailed: boolean;
}

/** Of two pieces at least: more than the native record has entries for. */
const kept = 1024;

const isMessage = ({ verb }: Pick<FlightEntry, 'verb'>): boolean => verb === 'send' || verb === 'recv';

export class Numbering {
  /** How many pieces there were beyond one for each operation: the same on all ranks. */
  #extra = 0;
  /** The last of them, oldest first. */
  readonly #splits: Split[] = [];

  /** Whether numbers are those of the group. */
  get isSame(): boolean {
    return this.#extra === 0;
  }

  /** The next collective by its number in the native group. */
  numbered<O extends Operation>(operation: O): O {
    return this.#extra === 0 ? operation : { ...operation, seq: operation.seq + this.#extra };
  }

  /** Takes numbers for the pieces of the next collective. Returns the first, and what to call if the operation fails. */
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

  /** An entry for each operation instead of each piece. An operation whose first piece the record has lost is left out. */
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

  /** The last one that does not begin after that number. */
  #splitAt(seq: number): Split | undefined {
    return this.#splits.findLast(({ first }) => first <= seq);
  }

  /** How many of the numbers before that one are beyond one for each operation. */
  #extraBefore(seq: number): number {
    const split = this.#splitAt(seq);
    if (split === undefined) return this.#splits[0]?.extra ?? 0;
    return split.extra + Math.max(0, Math.min(seq - split.first, split.pieces) - 1);
  }
}

/** What the pieces that have begun tell of the operation. */
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
