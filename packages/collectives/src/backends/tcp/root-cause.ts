// Agrees on one root cause of a failure. Several ranks may notice a failure at the same time, with different symptoms.
// Each reports to the lowest remaining rank, which takes the first report as the root cause and sends it to all ranks.
// If that rank has ended or does not answer because its thread is busy, the reporting rank asks the next one, and
// finally decides itself. The first decision that a rank receives is final for it. It forwards that decision, because
// the rank that decided may end before it has reached all ranks.
import type { Failure } from '../../errors.ts';
import { type Later, later } from './later.ts';

/** Milliseconds that a rank has to answer. */
const answerMs = 200;
/** Number of ranks to ask before this rank decides. */
const mostAsked = 2;

export interface Ranks {
  readonly rank: number;
  /** Returns the other remaining ranks, ascending. */
  readonly left: () => readonly number[];
  readonly report: (to: number, failure: Failure) => void;
  readonly tell: (to: number, cause: Failure) => void;
  /** Called once, when the root cause is known. */
  readonly onCause: (cause: Failure) => void;
}

export class RootCause {
  readonly #ranks: Ranks;
  #cause: Failure | null = null;
  /** The failure that this rank has noticed, until the root cause is known. */
  #noticed: Failure | null = null;
  readonly #asked: number[] = [];
  #timer: Later | undefined;
  #onDecided: (() => void)[] = [];

  constructor(ranks: Ranks) {
    this.#ranks = ranks;
  }

  /** Returns the root cause; null while there is none. */
  get known(): Failure | null {
    return this.#cause;
  }

  /** Whether this rank has noticed a failure. */
  get isFailing(): boolean {
    return this.#cause !== null || this.#noticed !== null;
  }

  /**
   * Resolves when the root cause of the failure that this rank has noticed is known; at once if it has noticed none.
   */
  async decided(): Promise<void> {
    if (this.#cause === null && this.#noticed !== null)
      await new Promise<void>((resolve) => this.#onDecided.push(resolve));
  }

  /** Reports a failure that this rank has noticed. Ignores later ones as its consequences. */
  notice(failure: Failure): void {
    if (this.isFailing) return;
    this.#noticed = failure;
    this.#ask();
  }

  /** Handles a failure that a peer has reported, or the decided root cause. */
  heard(failure: Failure): void {
    if (this.#cause === null) this.#decide(failure);
  }

  /** Handles the report of a peer: takes it as the root cause, or answers with the one that is already known. */
  answer(peer: number, failure: Failure): void {
    if (this.#cause === null) this.#decide(failure);
    else this.#ranks.tell(peer, this.#cause);
  }

  /** Handles the end of a rank that has left or is lost. */
  gone(rank: number): void {
    if (this.#cause === null && this.#noticed !== null && this.#asked.at(-1) === rank) this.#ask();
  }

  #ask(): void {
    this.#timer?.cancel();
    const next = this.#ranks.left().find((rank) => !this.#asked.includes(rank));
    const isMine = next === undefined || next > this.#ranks.rank || this.#asked.length === mostAsked;
    if (isMine) {
      this.#decide(this.#noticed!);
      return;
    }
    this.#asked.push(next);
    this.#timer = later(answerMs, () => this.#ask());
    this.#ranks.report(next, this.#noticed!);
  }

  #decide(cause: Failure): void {
    this.#timer?.cancel();
    this.#cause = cause;
    for (const rank of this.#ranks.left()) this.#ranks.tell(rank, cause);
    this.#ranks.onCause(cause);
    for (const resolve of this.#onDecided.splice(0)) resolve();
  }
}
