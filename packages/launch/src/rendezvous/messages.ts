// The messages between launchers and the coordinator, as JSON. Times of the monotonic clock are decimal text,
// in nanoseconds.

import { constants } from 'node:os';
import type { RankOutcome } from '../agent/rank-process.ts';
import { type Culprit, isCulprit } from '../report/culprit.ts';
import { lastLines } from '../report/last-lines.ts';
import { isReportedError, isSecondary, maxTextLength } from '../report/last-words.ts';
import { exitCodeOfSignal, rootCause } from '../report/report.ts';
import { isDecimal, type LastWords } from '../report/words.ts';

export interface Member {
  /** Unique per launcher. */
  readonly id: string;
  /** Name of its host in reports. */
  readonly host: string;
  readonly nproc: number;
  /** Group rank that the user assigned to it; null if it is assigned in order of arrival. */
  readonly nodeRank: number | null;
}

/** A message from a launcher to the coordinator. */
export type Report =
  | { readonly kind: 'clock'; readonly id: string }
  | { readonly kind: 'join'; readonly member: Member }
  /** A rank of the launcher has failed; its other ranks have not ended yet. */
  | {
      readonly kind: 'failing';
      readonly id: string;
      readonly round: number;
      /** Whether the rank's error says that a peer failed before it. */
      readonly isSecondary: boolean;
    }
  | {
      readonly kind: 'ended';
      readonly id: string;
      readonly round: number;
      readonly outcomes: readonly SentOutcome[];
    }
  /** A process of an elastic job has ended. */
  | {
      readonly kind: 'slot-ended';
      readonly id: string;
      readonly slot: number;
      readonly incarnation: number;
      readonly outcome: SentOutcome;
      /** The step that it has last reported by reportMetrics(); null if it has not. */
      readonly step: number | null;
    }
  /** The user has stopped the launcher, which forwarded the signal to its ranks at `atNs`. */
  | {
      readonly kind: 'leaving';
      readonly id: string;
      readonly signal: NodeJS.Signals;
      /** Time on the coordinator's clock. */
      readonly atNs: string;
    }
  /** The launcher has received the job's outcome. */
  | { readonly kind: 'bye'; readonly id: string };

/** A message from the coordinator to a launcher. */
export type Order =
  | { readonly kind: 'time'; readonly ns: string }
  | StartOrder
  | SlotOrder
  | AdmittedOrder
  /** The process of a slot must be killed, because the others have continued without it. */
  | { readonly kind: 'end-slot'; readonly slot: number; readonly incarnation: number }
  /** The launcher must wait; `text` tells the user why. */
  | { readonly kind: 'wait'; readonly text: string }
  | { readonly kind: 'stop'; readonly round: number }
  | { readonly kind: 'finish'; readonly outcome: Outcome };

export interface StartOrder {
  readonly kind: 'start';
  /** Number of the round: 0 at first, and 1 more after each restart of all ranks. */
  readonly round: number;
  readonly groupRank: number;
  readonly groupWorldSize: number;
  readonly firstRank: number;
  readonly worldSize: number;
  /** The reason for the restart, as a sentence; null in the first round. */
  readonly why: string | null;
}

/** Starts the process of one slot of an elastic job. */
export interface SlotOrder {
  readonly kind: 'slot';
  readonly slot: number;
  /** Number of earlier starts of the slot's process. */
  readonly incarnation: number;
  readonly localRank: number;
  readonly localWorldSize: number;
  /** Number of slots of the job now. */
  readonly worldSize: number;
  readonly groupRank: number;
  readonly groupWorldSize: number;
  /** The reason for the restart of the slot, as a sentence; null at first. */
  readonly why: string | null;
}

/**
 * Starts processes in slots for which the launcher decides by itself from then on. The coordinator sends it no further
 * order.
 */
export interface AdmittedOrder {
  readonly kind: 'admitted';
  readonly slots: readonly SlotOrder[];
}

/** Sends an order to the launcher with this id. */
export type Send = (to: string, order: Order) => void;

/** The end of the job. */
export interface Outcome {
  readonly exitCode: number;
  /** Report for the user; null if the job succeeded. */
  readonly text: string | null;
  /** Id of the launcher whose host had the root cause, or whose user stopped the job; null if there is none. */
  readonly blamed: string | null;
  /** The rank with the root cause; absent if no rank failed. */
  readonly culprit?: Culprit;
}

export const failed = (text: string, blamed: string | null = null): Outcome => ({
  exitCode: 1,
  text,
  blamed,
});

export const finish = (outcome: Outcome): Order => ({ kind: 'finish', outcome });

/** Returns the outcome if the user has stopped launcher `id`. */
export function stoppedBy(signal: NodeJS.Signals, id: string): Outcome {
  return { exitCode: exitCodeOfSignal(signal), text: `stopped by ${signal}.`, blamed: id };
}

export type SentOutcome = Omit<RankOutcome, 'failedNs' | 'lastWords'> & {
  readonly failedNs: string | null;
  readonly lastWords: { readonly timeNs: string; readonly error: LastWords['error'] } | null;
};

/** Maximum characters of each of a rank's last output lines that are sent. */
const sentLineLength = 2_048;

/** Maximum characters of a report as JSON. A store accepts 8 MiB, and a character has at most 3 bytes there. */
const maxReportLength = 2 << 20;
/** Maximum characters of a text in a report that would otherwise be too long. */
const shortLength = 200;

/**
 * Reports the end of a launcher's ranks. `offsetNs` is the coordinator's clock minus this host's. If many ranks
 * have long errors, only the host's root cause is reported with its stack and output.
 */
export function endedReport(
  id: string,
  round: number,
  outcomes: readonly RankOutcome[],
  offsetNs: bigint,
): Report {
  const whole = outcomes.map((outcome) => toSent(outcome, offsetNs));
  const report: Report = { kind: 'ended', id, round, outcomes: whole };
  if (JSON.stringify(report).length <= maxReportLength) return report;
  const root = outcomes.indexOf(rootCause(outcomes) ?? outcomes[0]!);
  return { ...report, outcomes: whole.map((sent, i) => shortened(sent, i === root)) };
}

/** Drops the parts that the decision about the root cause does not need. */
function shortened(sent: SentOutcome, isRoot: boolean): SentOutcome {
  const { lastWords } = sent;
  const tail = isRoot ? sent.tail : [];
  if (lastWords === null) return { ...sent, tail };
  const { timeNs, error } = lastWords;
  const { code } = error.fields;
  const fields = {
    ...(typeof code === 'string' && { code: code.slice(0, shortLength) }),
    ...(isSecondary(error) && { secondary: true }),
    ...(error.fields.native === true && { native: true }),
  };
  const most = isRoot ? maxTextLength : shortLength;
  const name = error.name.slice(0, shortLength);
  const message = error.message.slice(0, most);
  const stack = isRoot ? error.stack.slice(0, most) : '';
  return { ...sent, tail, lastWords: { timeNs, error: { name, message, stack, fields, cause: null } } };
}

/** Converts an outcome for sending. `offsetNs` is the coordinator's clock minus this host's. */
export function toSent(outcome: RankOutcome, offsetNs: bigint): SentOutcome {
  const { failedNs, lastWords, tail } = outcome;
  return {
    ...outcome,
    failedNs: failedNs === null ? null : `${failedNs + offsetNs}`,
    lastWords: lastWords && { timeNs: `${lastWords.timeNs + offsetNs}`, error: lastWords.error },
    tail: lastLines(tail).map((line) => line.slice(0, sentLineLength)),
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

/** Parses a message from a launcher; returns null for any other text, which is ignored. */
export function parseReport(text: string): Report | null {
  const report = parseObject(text);
  return report !== null && isReport(report) ? (report as unknown as Report) : null;
}

/** Parses a message from the coordinator; returns null for any other text. */
export function parseOrder(text: string): Order | null {
  const order = parseObject(text);
  if (order === null) return null;
  const isOrder = {
    time: () => isDecimal(order.ns),
    start: () =>
      [order.round, order.groupRank, order.groupWorldSize, order.firstRank, order.worldSize].every(isCount) &&
      isTextOrNull(order.why),
    slot: () => isSlotOrder(order),
    admitted: () =>
      Array.isArray(order.slots) &&
      order.slots.length > 0 &&
      order.slots.every((slot) => isObject(slot) && isSlotOrder(slot)),
    'end-slot': () => isCount(order.slot) && isCount(order.incarnation),
    wait: () => typeof order.text === 'string',
    stop: () => isCount(order.round),
    finish: () =>
      isObject(order.outcome) &&
      Number.isInteger(order.outcome.exitCode) &&
      isTextOrNull(order.outcome.text) &&
      isTextOrNull(order.outcome.blamed) &&
      (order.outcome.culprit === undefined || isCulprit(order.outcome.culprit)),
  };
  return lookUp(isOrder, order.kind)?.() ? (order as unknown as Order) : null;
}

type Sent = Readonly<Record<string, unknown>>;

function isSlotOrder(order: Sent): boolean {
  const { slot, incarnation, localRank, localWorldSize, worldSize, groupRank, groupWorldSize, why } = order;
  const counts = [slot, incarnation, localRank, localWorldSize, worldSize, groupRank, groupWorldSize];
  return order.kind === 'slot' && counts.every(isCount) && isTextOrNull(why);
}

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
    'slot-ended': () =>
      hasId &&
      [report.slot, report.incarnation].every(isCount) &&
      (report.step === null || Number.isFinite(report.step)) &&
      isObject(report.outcome) &&
      isOutcome(report.outcome),
    leaving: () => hasId && isSignal(report.signal) && isDecimal(report.atNs),
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
