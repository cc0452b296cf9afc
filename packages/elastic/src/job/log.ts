// The membership log: one line of JSON for each view, with its first step. Together with the seed it determines which
// rank computed which samples of each step, so that a run can be repeated.
import { accessSync, appendFileSync, constants, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { logNotWritable } from '../errors.ts';
import type { Decision, View } from '../membership/protocol/view.ts';

/** One line of the membership log. */
export interface LogEntry {
  /** Number of the view. */
  readonly view: number;
  /** Number of steps that were final before the view's first step. */
  readonly step: number;
  /** Number of ranks from this step on. */
  readonly size: number;
  /** Slots of the members, in rank order. */
  readonly slots: readonly number[];
  /** Decision about the step that was in flight in the previous view. */
  readonly decision: Decision;
  /** Ids of members that joined with this view. */
  readonly joined: readonly string[];
  /** Ids of members of the view before that were lost. */
  readonly lost: readonly string[];
  /** Ids of members that left after their last step. */
  readonly left: readonly string[];
}

/**
 * A file or a function. Rank 0 of the first view creates the file, and rank 0 of each later view appends a line. Every
 * rank calls the function.
 */
export type LogTarget = string | ((entry: LogEntry) => void);

export function entryOf(view: View, step: number): LogEntry {
  const { number, members, decision, joined, lost, left } = view;
  const slots = members.map(({ slot }) => slot);
  return { view: number, step, size: members.length, slots, decision, joined, lost, left };
}

/** Throws ERR_ELASTIC_INVALID if no line can be appended to a file. Does not make the file: only rank 0 needs it. */
export function checkLogFile(path: string): void {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found?.isDirectory()) throw new Error('it is a folder');
    accessSync(found ? path : dirname(path), constants.W_OK);
  } catch (error) {
    throw logNotWritable(path, error as Error);
  }
}

export function writeLog(target: LogTarget | null, entry: LogEntry, isLeader: boolean): void {
  if (typeof target === 'function') target(entry);
  else if (target !== null && isLeader) {
    // The first view belongs to a new job. The lines of an earlier one would mix with its own.
    const write = entry.view === 0 ? writeFileSync : appendFileSync;
    write(target, `${JSON.stringify(entry)}\n`);
  }
}
