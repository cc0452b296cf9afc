// The root cause of a failed job as data, so that each viewer can phrase it.

import type { RankOutcome } from '../agent/rank-process.ts';
import { ending, placeOf } from './report.ts';

export interface Culprit {
  readonly rank: number;
  readonly host: string;
  /** Description of the rank's end, such as "exit code 1" or "SIGKILL". */
  readonly ending: string;
  /** The first line of the error that ended it; null if it reported none. */
  readonly error: string | null;
  /** Location in the program that threw it, such as "train.ts:88"; null if unknown. */
  readonly at: string | null;
}

const maxErrorLength = 300;

/** Describes the rank with the root cause. */
export function culpritOf(root: RankOutcome): Culprit {
  const error = root.lastWords?.error;
  const line = error && `${error.name}: ${error.message}`.split('\n', 1)[0]!.slice(0, maxErrorLength);
  return {
    rank: root.rank,
    host: root.host,
    ending: ending(root),
    error: line ?? null,
    at: placeOf(root),
  };
}

/** Checks whether a value from another launcher is a Culprit. */
export function isCulprit(value: unknown): value is Culprit {
  if (typeof value !== 'object' || value === null) return false;
  const { rank, host, ending: end, error, at } = value as Record<string, unknown>;
  const isText = [host, end].every((text) => typeof text === 'string');
  return Number.isSafeInteger(rank) && isText && [error, at].every(isTextOrNull);
}

const isTextOrNull = (value: unknown) => value === null || typeof value === 'string';
