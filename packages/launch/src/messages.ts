// What launchers and their coordinator tell each other. Everything is JSON: times of the monotonic clock travel as
// decimal text, in nanoseconds.

import type { LastWords } from './last-words.ts';
import type { RankOutcome } from './rank-process.ts';

export interface Member {
  /** Unique per launcher. */
  readonly id: string;
  /** How reports call its host. */
  readonly host: string;
  readonly nproc: number;
  /** Index that was given to it; null: in order of arrival. */
  readonly nodeRank: number | null;
}

/** From a launcher. */
export type Report =
  | { readonly kind: 'clock'; readonly id: string }
  | { readonly kind: 'join'; readonly member: Member }
  /** A rank there has failed; the others there have not ended yet. */
  | {
      readonly kind: 'failing';
      readonly id: string;
      readonly round: number;
      /** It says that a peer failed before it. */
      readonly isSecondary: boolean;
    }
  | {
      readonly kind: 'ended';
      readonly id: string;
      readonly round: number;
      readonly outcomes: readonly SentOutcome[];
    }
  /** Its user has told it to stop. */
  | { readonly kind: 'leaving'; readonly id: string; readonly signal: NodeJS.Signals }
  /** It has read how the job ended. */
  | { readonly kind: 'bye'; readonly id: string };

/** To a launcher. */
export type Order =
  | { readonly kind: 'time'; readonly ns: string }
  | StartOrder
  /** Nothing to do yet; `text` is for the user. */
  | { readonly kind: 'wait'; readonly text: string }
  | { readonly kind: 'stop'; readonly round: number }
  | { readonly kind: 'finish'; readonly verdict: Verdict };

export interface StartOrder {
  readonly kind: 'start';
  /** 0, then one more for each time that all ranks are started again, for whatever reason. */
  readonly round: number;
  readonly groupRank: number;
  readonly groupWorldSize: number;
  readonly firstRank: number;
  readonly worldSize: number;
  /** A sentence; null in the first round. */
  readonly why: string | null;
}

/** How the job ended. */
export interface Verdict {
  readonly exitCode: number;
  /** What to tell the user; null if all went well. */
  readonly text: string | null;
  /** The launcher on whose host it happened. */
  readonly blamed: string | null;
}

export type SentOutcome = Omit<RankOutcome, 'failedNs' | 'lastWords'> & {
  readonly failedNs: string | null;
  readonly lastWords: { readonly timeNs: string; readonly error: LastWords['error'] } | null;
};

/** Of the last output so many lines of so many characters travel. */
const sentLines = 10;
const sentLineLength = 2_048;

/** `offsetNs` is added to this host's clock to get the coordinator's. */
export function toSent(outcome: RankOutcome, offsetNs: bigint): SentOutcome {
  const { failedNs, lastWords, tail } = outcome;
  return {
    ...outcome,
    failedNs: failedNs === null ? null : `${failedNs + offsetNs}`,
    lastWords: lastWords && { timeNs: `${lastWords.timeNs + offsetNs}`, error: lastWords.error },
    tail: tail.slice(-sentLines).map((line) => line.slice(0, sentLineLength)),
  };
}

export function fromSent(sent: SentOutcome): RankOutcome {
  const { failedNs, lastWords } = sent;
  return {
    ...sent,
    failedNs: failedNs === null ? null : BigInt(failedNs),
    lastWords: lastWords && { timeNs: BigInt(lastWords.timeNs), error: lastWords.error },
  };
}
