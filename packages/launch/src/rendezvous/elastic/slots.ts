// The slots of an elastic job. A slot is a stable number under which one process at a time trains: it keeps its number,
// its local rank and its log file when its process is started again. If its host is gone, the next host that joins gets
// the slot, and its incarnations count on, because `slot.incarnation` must be unique in the job.

import type { RankOutcome } from '../../agent/rank-process.ts';

export type SlotState =
  /** Its process runs, as far as the coordinator knows. */
  | 'running'
  /** Its process has failed, and is started again at `startMs`. */
  | 'waiting'
  /** Its process has exited with 0, or was started when the training was over. It is not started again. */
  | 'finished'
  /** Its process has ended after the job or its host was told to stop. */
  | 'stopped';

export interface Slot {
  readonly number: number;
  /** Id of the launcher on its host; null if that launcher has left or is lost. */
  host: string | null;
  localRank: number;
  state: SlotState;
  /** Number of earlier starts of its process. */
  incarnation: number;
  /** Number of restarts on this host since its last process with a long life. */
  restarts: number;
  /** Number of consecutive processes that ended soon after their start. */
  shortLives: number;
  startedMs: number;
  startMs: number;
  /** Outcome of its last process; null before. */
  outcome: RankOutcome | null;
}

/** Returns the id of the present process of a slot, which is also the id of that process as a member of a view. */
export const memberOf = ({ number, incarnation }: Pick<Slot, 'number' | 'incarnation'>): string =>
  `${number}.${incarnation}`;

/** Returns the slot of the process `slot.incarnation`. */
export const slotOf = (id: string): number => Number.parseInt(id, 10);

/** Error code of a process that was started when the training was over. */
const cameTooLate = 'ERR_ELASTIC_OVER';

/** Returns whether a process has ended successfully, so that its slot needs no further process. */
export const isDone = ({ exitCode, lastWords }: RankOutcome): boolean =>
  exitCode === 0 || lastWords?.error.fields.code === cameTooLate;

/** Milliseconds below which a process has had a short life: the next start of its slot is then delayed. */
const shortLifeMs = 5_000;
const maxBackOffMs = 30_000;

/** Milliseconds of life that reset the count of restarts of a slot: earlier failures had other causes. */
const longLifeMs = 600_000;

/** Clears the count of restarts of a slot whose process has failed after a long life. */
export function forgetRestarts(slot: Slot, nowMs: number): void {
  if (nowMs - slot.startedMs >= longLifeMs) slot.restarts = 0;
}

/** Schedules the restart of a slot whose process has failed: at once, or later if it keeps failing. */
export function scheduleRestart(slot: Slot, nowMs: number): void {
  slot.shortLives = nowMs - slot.startedMs < shortLifeMs ? slot.shortLives + 1 : 1;
  slot.restarts++;
  slot.state = 'waiting';
  slot.startMs = nowMs + backOffMs(slot.shortLives);
}

/** Returns the delay before a start: 0, 1, 2, 4, … 30 s after 1, 2, 3, 4, … consecutive short lives. */
export function backOffMs(shortLives: number): number {
  return shortLives <= 1 ? 0 : Math.min(maxBackOffMs, 1_000 * 2 ** (shortLives - 2));
}

export class SlotTable {
  readonly #slots: Slot[] = [];

  /** All slots, by number, including slots without a host. */
  get all(): readonly Slot[] {
    return this.#slots;
  }

  of(host: string): readonly Slot[] {
    return this.#slots.filter((slot) => slot.host === host);
  }

  /** Slots whose host takes part. */
  get assigned(): readonly Slot[] {
    return this.#slots.filter(({ host }) => host !== null);
  }

  /**
   * Assigns up to `count` slots to a host, at most `max` in the whole job: the lowest numbers that no host has. Each is
   * in state 'waiting' with a start that is due.
   */
  assign(host: string, count: number, max: number, nowMs: number): readonly Slot[] {
    const room = Math.max(0, Math.min(count, max - this.assigned.length));
    return Array.from({ length: room }, (_, localRank) => {
      const free = this.#slots.find((slot) => slot.host === null);
      const incarnation = free ? free.incarnation + 1 : 0;
      const number = free?.number ?? this.#slots.length;
      const slot: Slot = {
        number,
        host,
        localRank,
        state: 'waiting',
        incarnation,
        restarts: 0,
        shortLives: 0,
        startedMs: nowMs,
        startMs: nowMs,
        outcome: null,
      };
      this.#slots[number] = slot;
      return slot;
    });
  }

  /** Removes all slots from a host that has left or is lost. Returns the processes that may still have run there. */
  remove(host: string): readonly string[] {
    const slots = this.of(host);
    const ran = slots.filter(({ state }) => state === 'running').map(memberOf);
    for (const slot of slots) slot.host = null;
    return ran;
  }
}
