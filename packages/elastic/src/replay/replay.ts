// Repeats the views of a membership log without losses: processes that init() has connected train each step on as many
// ranks as trained it in the logged job. The assignment of samples and the order of sums depend only on the number of
// ranks, so the replay ends with the same bits. It needs as many processes as the largest view had members.
import { readFileSync } from 'node:fs';
import type { Group } from '@ringwise/collectives';
import { shown } from '../check.ts';
import { badEntries, logDamaged, logUnreadable, mixedLog, replayTooSmall } from '../errors.ts';
import type { LogEntry } from '../job/log.ts';
import type { Change, Membership, Vote } from '../membership/membership.ts';
import type { Member, View } from '../membership/protocol/view.ts';

/** Number of ranks from a step on. */
export type Phase = Pick<LogEntry, 'step' | 'size'>;

/** Returns the entries of a log, which may be a path. Throws ERR_ELASTIC_REPLAY if there are none. */
export function entriesOf(replay: unknown): readonly LogEntry[] {
  if (typeof replay === 'string') return readLog(replay);
  if (!Array.isArray(replay)) throw badEntries(shown(replay));
  const wrong = replay.findIndex((each) => !isEntry(each));
  if (wrong !== -1) throw badEntries(`another value at index ${wrong}`);
  return replay as LogEntry[];
}

/** Reads the entries of a log file. Throws ERR_ELASTIC_REPLAY if it cannot be read or a line is not an entry. */
export function readLog(file: string): LogEntry[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw logUnreadable(error);
  }
  return text.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return [];
    try {
      const entry: unknown = JSON.parse(line);
      if (isEntry(entry)) return [entry];
    } catch {
      // Reported below.
    }
    throw logDamaged(file, i + 1);
  });
}

function isEntry(value: unknown): value is LogEntry {
  if (typeof value !== 'object' || value === null) return false;
  const { view, step, size } = value as LogEntry;
  return [view, step, size].every(Number.isSafeInteger);
}

/**
 * Returns the sizes of a job by step. Entries may come in any order, and repeatedly from several members. Ignores a
 * view that made no step final. Keeps a view of the same size as the previous one, because a change of the view resets
 * state that hooks keep on each rank. Throws ERR_ELASTIC_REPLAY if entries of one view differ: then they belong to two
 * jobs.
 */
export function phasesOf(entries: readonly LogEntry[]): Phase[] {
  const phases: Phase[] = [];
  let last: LogEntry | undefined;
  for (const entry of [...entries].sort((a, b) => a.view - b.view)) {
    const { view, step, size } = entry;
    if (last?.view === view && (last.step !== step || last.size !== size)) throw mixedLog(view);
    last = entry;
    if (phases.at(-1)?.step === step) phases.pop();
    phases.push({ step, size });
  }
  return phases;
}

/** Returns a membership that follows `phases`. Collective in `group`, whose first ranks are the members. */
export async function replayMembership(group: Group, phases: readonly Phase[]): Promise<Membership> {
  const most = Math.max(0, ...phases.map(({ size }) => size));
  if (most === 0 || most > group.size) throw replayTooSmall(most, group.size);
  const replay = new Replay(group, phases);
  await replay.begin();
  return replay;
}

class Replay implements Membership {
  readonly self: Member;
  first!: Change;
  readonly #all: Group;
  readonly #phases: readonly Phase[];
  #at = -1;
  /** The last view of this process. After the process has left, the view's group is closed. */
  #now: Change | null = null;
  #finalSteps = 0;
  #isLeaving = false;
  #closing: Promise<void> | null = null;

  constructor(all: Group, phases: readonly Phase[]) {
    this.#all = all;
    this.#phases = phases;
    this.self = memberOf(all.rank);
  }

  get view(): View {
    return this.#now!.view;
  }
  get group(): Group {
    return this.#now!.group;
  }

  async begin(): Promise<void> {
    this.first = await this.#next();
  }

  readonly vote = async (): Promise<Vote> => this.voteSync();

  readonly voteSync = (): Vote => {
    this.#finalSteps++;
    const changesView = this.#phases[this.#at + 1]?.step === this.#finalSteps;
    const isLeaving = this.#isLeaving || (changesView && !this.#isNeeded(this.#at + 1));
    return { changesView, isLeaving };
  };

  readonly isChange = (): boolean => false;

  readonly change = (): Promise<Change> => this.#next();

  readonly leave = (): void => {
    this.#isLeaving = true;
  };

  /** Also takes part in making the groups of the remaining phases, which is collective over all ranks. */
  readonly close = (): Promise<void> => {
    this.#closing ??= (async () => {
      while (this.#at + 1 < this.#phases.length) await this.#enter();
      await this.#all.close();
    })();
    return this.#closing;
  };

  /** Returns whether this process is a member in phase `from` or a later one. */
  #isNeeded(from: number): boolean {
    return this.#phases.slice(from).some(({ size }) => this.#all.rank < size);
  }

  /** Advances to the next phase in which this process is a member. */
  async #next(): Promise<Change> {
    for (;;) {
      const before = this.#at < 0 ? 0 : this.#phases[this.#at]!.size;
      const group = await this.#enter();
      if (group === null) continue;
      const { size, step } = this.#phases[this.#at]!;
      const members = Array.from({ length: size }, (_, rank) => memberOf(rank));
      const joined = [...members.keys()].filter((rank) => rank >= before);
      this.#finalSteps = step;
      const view: View = {
        ...{ number: this.#at, epoch: 0, members, joined: joined.map((rank) => members[rank]!.id) },
        ...{ lost: [], left: [], finalSteps: step, decision: 'redo', wishes: 0, unread: [], unsettled: [] },
        ...{ failure: null, ended: null, isOver: false },
      };
      this.#now = { view, group, decision: 'redo', joined };
      return this.#now;
    }
  }

  /** Makes the group of the next phase; returns null if this process is not a member of it. */
  async #enter(): Promise<Group | null> {
    await this.#now?.group.close();
    this.#at++;
    const { size } = this.#phases[this.#at]!;
    const isMember = this.#all.rank < size;
    return await this.#all.split(isMember ? 0 : null, this.#all.rank, { name: `view ${this.#at}` });
  }
}

function memberOf(rank: number): Member {
  return { id: `replay.${rank}`, slot: rank, host: '', process: null, standby: null };
}
