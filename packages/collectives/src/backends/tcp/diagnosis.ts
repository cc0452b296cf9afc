// Finds the ranks that delay a collective. A missing rank may itself wait for another rank in an earlier collective. So
// before this rank blames it, it asks which ranks the missing rank waits for, and then asks those in turn.

import { type Later, later } from './later.ts';

/** Milliseconds for all answers. A rank that does not answer, because its thread is busy or stopped, is to blame. */
const answersMs = 200;

export interface Asking {
  readonly rank: number;
  /** Asks a rank which ranks it waits for. The answer arrives through heard(). */
  readonly ask: (rank: number) => void;
}

export class Diagnosis {
  readonly #asking: Asking;
  /** The ranks that each asked rank waits for; null until it has answered. */
  readonly #answers = new Map<number, readonly number[] | null>();
  readonly #onBlame: (ranks: readonly number[]) => void;
  readonly #suspects: readonly number[];
  readonly #timer: Later;
  #isOver = false;

  /** Asks the suspects. Calls `onBlame` once, with the ranks to blame in ascending order. */
  constructor(asking: Asking, suspects: readonly number[], onBlame: (ranks: readonly number[]) => void) {
    this.#asking = asking;
    this.#suspects = suspects;
    this.#onBlame = onBlame;
    this.#timer = later(answersMs, () => this.#end());
    for (const rank of suspects) this.#ask(rank);
    this.#endIfAnswered();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Handles the answer of a rank: the ranks that it waits for, or none. */
  heard(rank: number, waitsFor: readonly number[]): void {
    if (this.#isOver || this.#answers.get(rank) !== null) return;
    this.#answers.set(rank, waitsFor);
    for (const other of waitsFor) this.#ask(other);
    this.#endIfAnswered();
  }

  #ask(rank: number): void {
    if (rank === this.#asking.rank || this.#answers.has(rank)) return;
    this.#answers.set(rank, null);
    this.#asking.ask(rank);
  }

  #endIfAnswered(): void {
    if (![...this.#answers.values()].includes(null)) this.#end();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer.cancel();
    // A rank is to blame if it waits for no other rank than this one.
    const blamed = [...this.#answers].flatMap(([rank, waitsFor]) =>
      (waitsFor ?? []).some((other) => other !== this.#asking.rank) ? [] : [rank],
    );
    // Ranks that wait for each other in a circle are all to blame.
    this.#onBlame(blamed.length > 0 ? blamed.sort((a, b) => a - b) : this.#suspects);
  }
}
