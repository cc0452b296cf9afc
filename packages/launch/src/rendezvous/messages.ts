// What launchers and their coordinator tell each other. Everything is JSON: times of the monotonic clock travel as
// decimal text, in nanoseconds.

import { constants } from 'node:os';
import type { RankOutcome } from '../agent/rank-process.ts';
import { isReportedError } from '../report/last-words.ts';
import type { LastWords } from '../report/words.ts';

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
  | { readonly kind: 'finish'; readonly outcome: Outcome };

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
export interface Outcome {
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

/** What a launcher has sent; null for anything else, which is ignored. */
export function parseReport(text: string): Report | null {
  const report = parseObject(text);
  return report !== null && isReport(report) ? (report as unknown as Report) : null;
}

/** What the coordinator has sent; null for anything else. */
export function parseOrder(text: string): Order | null {
  const order = parseObject(text);
  if (order === null) return null;
  const isOrder = {
    time: () => isDecimal(order.ns),
    start: () =>
      [order.round, order.groupRank, order.groupWorldSize, order.firstRank, order.worldSize].every(isCount) &&
      isTextOrNull(order.why),
    wait: () => typeof order.text === 'string',
    stop: () => isCount(order.round),
    finish: () =>
      isObject(order.outcome) &&
      Number.isInteger(order.outcome.exitCode) &&
      isTextOrNull(order.outcome.text) &&
      isTextOrNull(order.outcome.blamed),
  };
  return lookUp(isOrder, order.kind)?.() ? (order as unknown as Order) : null;
}

type Sent = Readonly<Record<string, unknown>>;

function isReport(report: Sent): boolean {
  const hasId = typeof report.id === 'string';
  const isKind = {
    clock: () => hasId,
    bye: () => hasId,
    join: () => isMember(report.member),
    failing: () => hasId && isCount(report.round) && typeof report.isSecondary === 'boolean',
    ended: () =>
      hasId &&
      isCount(report.round) &&
      Array.isArray(report.outcomes) &&
      report.outcomes.every((outcome) => isObject(outcome) && isOutcome(outcome)),
    leaving: () => hasId && isSignal(report.signal),
  };
  return lookUp(isKind, report.kind)?.() ?? false;
}

function isMember(member: unknown): boolean {
  if (!isObject(member)) return false;
  const { id, host, nproc, nodeRank } = member;
  const isText = typeof id === 'string' && typeof host === 'string';
  return isText && isCount(nproc) && nproc > 0 && (nodeRank === null || isCount(nodeRank));
}

function isOutcome({ rank, host, pid, exitCode, signal, failedNs, lastWords, tail, logFile }: Sent): boolean {
  return (
    isCount(rank) &&
    typeof host === 'string' &&
    (pid === undefined || isCount(pid)) &&
    (exitCode === null || Number.isInteger(exitCode)) &&
    (signal === null || isSignal(signal)) &&
    (failedNs === null || isDecimal(failedNs)) &&
    (lastWords === null ||
      (isObject(lastWords) && isDecimal(lastWords.timeNs) && isReportedError(lastWords.error))) &&
    Array.isArray(tail) &&
    tail.every((line) => typeof line === 'string') &&
    isTextOrNull(logFile)
  );
}

const isObject = (value: unknown): value is Sent =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isDecimal = (value: unknown) => typeof value === 'string' && /^-?\d{1,19}$/.test(value);
const isSignal = (value: unknown) => typeof value === 'string' && Object.hasOwn(constants.signals, value);
const isTextOrNull = (value: unknown) => value === null || typeof value === 'string';

function parseObject(text: string): Sent | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function lookUp<T>(table: Readonly<Record<string, T>>, key: unknown): T | undefined {
  return typeof key === 'string' && Object.hasOwn(table, key) ? table[key] : undefined;
}
