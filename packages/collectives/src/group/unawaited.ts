// Reports failures of calls that the program has not awaited, which it would otherwise never see. When the process has
// no work left, the first of them is thrown, so that the process ends with an error instead of exit code 0.
//
// The failure of an operation counts only if the group was not closed and no other call has reported a failure of the
// group. The failure of a call that was refused, such as one with a wrong argument, is reported nowhere else; that the
// group is closed is reported once.

import { type CollectiveCode, CollectiveError } from '../errors.ts';

/** The facts about the group of a failed call that the report needs. */
export interface Reporting {
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  readonly isClosed?: boolean;
  /** Whether the program has received an error of the group. */
  isReported?: boolean;
  /** Whether the program has received the error of a call that came after close(). */
  isClosedReported?: boolean;
}

interface Unheard {
  readonly error: CollectiveError;
  readonly group: Reporting;
}

/**
 * Maximum number of failures to keep: enough to find one to report, even if the program ignores those of many calls.
 */
const most = 16;
const unheard = new Map<object, Unheard>();
let isWatching = false;

/** Codes of calls that were refused before they did anything. */
const ofRefused: ReadonlySet<CollectiveCode> = new Set([
  'ERR_COLL_INVALID',
  'ERR_COLL_UNSUPPORTED',
  'ERR_COLL_CLOSED',
]);

/**
 * Notes that the program receives `error`. The error of a refused call says nothing about the group, which may have
 * failed or fail later: that failure is still to be reported.
 */
export function told(group: Reporting, error: unknown): void {
  const code = CollectiveError.is(error) ? error.code : null;
  if (code === 'ERR_COLL_CLOSED') group.isClosedReported = true;
  else if (code === null || !ofRefused.has(code)) group.isReported = true;
}

/** Remembers the failure of `work`, which the program has not awaited yet. */
export function keepUnheard(work: object, failure: Unheard): void {
  if (unheard.size === most) return;
  unheard.set(work, failure);
  if (isWatching) return;
  isWatching = true;
  // If the program has called process.exit(), it has decided on its exit code, and no 'beforeExit' came before.
  let hasRunOut = false;
  process.on('beforeExit', () => {
    hasRunOut = true;
  });
  process.on('exit', (exitCode) => {
    if (hasRunOut && exitCode === 0) throwFirst();
  });
}

/** Forgets the failure of `work`, because the program receives it. */
export function heard(work: object): void {
  unheard.delete(work);
}

function throwFirst(): void {
  const found = [...unheard.values()].find(({ error, group }) => {
    if (error.code === 'ERR_COLL_CLOSED') return !group.isClosedReported;
    return ofRefused.has(error.code) || !(group.isClosed || group.isReported);
  });
  if (found === undefined) return;
  const { error, group } = found;
  const site = { group: group.name, rank: group.rank, size: group.size };
  const { code, verb, seq, peers, secondary } = error;
  const what = `nothing awaited this call, and it failed: ${error.what}`;
  const failure = { code, verb, seq, peers, what, next: 'Await every call.' };
  const thrown = new CollectiveError(secondary ? { ...failure, isSecondary: true } : failure, site);
  // The place of the call, and not this handler.
  thrown.stack = (error.stack ?? '').replace(/^[^\n]*/, `CollectiveError: ${thrown.message}`);
  throw thrown;
}
