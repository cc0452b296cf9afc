// How the ranks agree on one root cause of a failure. Several ranks may notice a failure at once, with
// different symptoms. Each reports what it noticed to the lowest rank that is left, which takes the first
// report as the root cause and tells all. If that rank ends or does not answer, because its thread is busy, the
// next one is asked; in the end the reporting rank decides. The first decision that a rank hears of is final
// for it, and it passes that on, because the rank that decided may end before it has told all.
import type { Failure } from '../../errors.ts';
import { type Later, later } from './later.ts';

/** Time that an asked rank has to answer. */
const answerMs = 200;
/** Ranks that are asked before this rank decides. */
const mostAsked = 2;

export interface Ranks {
  readonly rank: number;
  /** Returns the other ranks that are left, ascending. */
  readonly left: () => readonly number[];
  readonly report: (to: number, failure: Failure) => void;
  readonly tell: (to: number, cause: Failure) => void;
  /** The root cause is known; called once. */
  readonly onCause: (cause: Failure) => void;
}

export class RootCause {
  readonly #ranks: Ranks;
  #cause: Failure | null = null;
  /** What this rank has noticed, until the root cause is known. */
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

  /** Resolves when the root cause of what this rank has noticed is known; at once if it has noticed nothing. */
  async decided(): Promise<void> {
    if (this.#cause === null && this.#noticed !== null)
      await new Promise<void>((resolve) => this.#onDecided.push(resolve));
  }

  /** Reports a failure that this rank has noticed. Later ones are taken for its consequences. */
  notice(failure: Failure): void {
    if (this.isFailing) return;
    this.#noticed = failure;
    this.#ask();
  }

  /** A peer has reported a failure to this rank, or told the root cause. */
  heard(failure: Failure): void {
    if (this.#cause === null) this.#decide(failure);
  }

  /** A peer has reported a failure to this rank. */
  answer(peer: number, failure: Failure): void {
    if (this.#cause === null) this.#decide(failure);
    else this.#ranks.tell(peer, this.#cause);
  }

  /** A rank has left or is lost. */
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
