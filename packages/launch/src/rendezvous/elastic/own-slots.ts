// Decides for the slots of this host after the launcher with the coordinator is lost, while the ranks continue in
// another store: restarts the process of a slot under the same conditions as the coordinator.

import { setTimeout as sleep } from 'node:timers/promises';
import type { RankOutcome } from '../../agent/rank-process.ts';
import { ending } from '../../report/report.ts';
import type { SlotOrder } from '../messages.ts';
import * as words from '../outcomes.ts';
import { maxRepeats, RepeatedFailures } from './repeated-failures.ts';
import { forgetRestarts, isDone, memberOf, type Slot, scheduleRestart } from './slots.ts';

export interface OwnSlotsOptions {
  readonly maxRestarts: number;
  /** Prints a line for the user. */
  readonly say: (text: string) => void;
  /**
   * Finds the store of the ranks after the loss of a process, and reports the loss there. Resolves with the number of
   * final steps; null if no store is found, or the job has ended. Rejects with the reason of `signal`.
   */
  readonly follow: (id: string, ending: string, signal: AbortSignal) => Promise<number | null>;
  /** Starts the process of a slot, in that store. */
  readonly start: (order: SlotOrder) => Promise<void>;
}

/** The error code of a rank whose job has ended. */
const jobEnded = 'ERR_ELASTIC_ENDED';

export class OwnSlots {
  readonly #options: OwnSlotsOptions;
  readonly #orders: ReadonlyMap<number, SlotOrder>;
  readonly #slots = new Map<number, Slot>();
  readonly #repeats = new RepeatedFailures();
  readonly #stopped = new AbortController();
  readonly #ended: Promise<void>;
  #resolve!: () => void;
  #reject!: (error: unknown) => void;

  /** `orders` are the last ones that this launcher got for its slots; their processes run, or have ended. */
  constructor(orders: ReadonlyMap<number, SlotOrder>, options: OwnSlotsOptions) {
    this.#options = options;
    this.#orders = orders;
    this.#ended = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const startedMs = performance.now();
    for (const { slot, incarnation, localRank } of orders.values())
      this.#slots.set(slot, {
        ...{ number: slot, host: null, localRank, incarnation, state: 'running' },
        ...{ restarts: 0, shortLives: 0, startedMs, startMs: 0, outcome: null },
      });
  }

  /** Resolves when no process is left and none will be started. Rejects if one could not be started. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  /** Starts no process from now on, because this launcher is being stopped. */
  stop(): void {
    this.#stopped.abort();
    this.#conclude();
  }

  /** Notes that a process has ended; `step` is the last one that it has reported. */
  handle(number: number, incarnation: number, outcome: RankOutcome, step: number | null): void {
    const slot = this.#slots.get(number);
    if (slot?.incarnation !== incarnation || slot.state !== 'running') return;
    slot.outcome = outcome;
    slot.state = isDone(outcome) ? 'finished' : 'stopped';
    if (slot.state === 'stopped' && !this.#stopped.signal.aborted) {
      slot.state = 'waiting';
      this.#startAgain(slot, outcome, step).then(
        () => this.#conclude(),
        (error: unknown) => this.#reject(error),
      );
    }
    this.#conclude();
  }

  /** Restarts a slot, or prints the reason why not. Its state is 'waiting' meanwhile. */
  async #startAgain(slot: Slot, outcome: RankOutcome, step: number | null): Promise<void> {
    const { say, follow, start, maxRestarts } = this.#options;
    const { signal } = this.#stopped;
    forgetRestarts(slot, performance.now());
    const why =
      outcome.lastWords?.error.fields.code === jobEnded
        ? words.endedThere
        : slot.restarts >= maxRestarts
          ? words.asOftenAsAllowed(maxRestarts)
          : null;
    const finalSteps =
      why === null ? await this.#unlessStopped(follow(memberOf(slot), ending(outcome), signal)) : null;
    const atStep = Math.max(step ?? 0, finalSteps ?? 0);
    const isRepeated = finalSteps !== null && this.#repeats.count(outcome, atStep) >= maxRepeats;
    if (finalSteps === null || isRepeated) {
      slot.state = 'stopped';
      if (signal.aborted) return;
      const reason = why ?? (isRepeated ? words.failsAgain(maxRepeats, atStep) : words.notFound);
      say(words.notAgain(slot.number, ending(outcome), reason));
      return;
    }
    scheduleRestart(slot, performance.now());
    await this.#unlessStopped(sleep(Math.max(0, slot.startMs - performance.now()), undefined, { signal }));
    if (signal.aborted) {
      slot.state = 'stopped';
      return;
    }
    slot.incarnation++;
    slot.state = 'running';
    slot.startedMs = performance.now();
    const again = words.slotAgain(slot.number, ending(outcome), slot.restarts, maxRestarts);
    await start({ ...this.#orders.get(slot.number)!, incarnation: slot.incarnation, why: again });
  }

  /** Resolves with the result of `wait`, or with null if stop() ends the wait. */
  async #unlessStopped<T>(wait: Promise<T>): Promise<T | null> {
    try {
      return await wait;
    } catch (error) {
      if (this.#stopped.signal.aborted) return null;
      throw error;
    }
  }

  #conclude(): void {
    const isOver = [...this.#slots.values()].every(
      ({ state }) => state === 'finished' || state === 'stopped',
    );
    if (isOver) this.#resolve();
  }
}
