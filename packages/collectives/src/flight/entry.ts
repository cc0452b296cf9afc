// An entry of a flight record, as backends write it and programs read it.
import type { Verb } from '../all-verbs.ts';
import type { DType } from '../dtype.ts';
import type { ReduceOp } from '../reduce-ops.ts';

/**
 * One operation of a flight record. A call may consist of several operations: an object takes two. Times are
 * milliseconds of the host's monotonic clock, which process.hrtime() reads and all processes of the host
 * share.
 */
export interface FlightEntry {
  /** Number of operations that this rank had called on the group before. */
  readonly number: number;
  /** Verb of the operation; 'capturedStep' for a launch of a captured step with collectives. */
  readonly verb: Verb | 'capturedStep';
  /**
   * Index among the group's collectives; for messages, among this rank's sends to, or receives from, that
   * peer.
   */
  readonly seq: number;
  /** Null for a barrier. */
  readonly dtype: DType | null;
  /**
   * Number of elements: of the input, or of the output for scatter and reduceScatter; of all parts together
   * if they differ.
   */
  readonly count: number;
  /** Number of bytes that `count` elements take. */
  readonly bytes: number;
  /** Reduction, or null if the verb does not reduce. */
  readonly op: ReduceOp | null;
  /** Root, or null if the verb has none. */
  readonly root: number | null;
  /** Other side of a message; -1 while a receive from any rank has not ended. Null for collectives. */
  readonly peer: number | null;
  /** Tag of a message; null for collectives. */
  readonly tag: number | null;
  /** Label from the options of the call, or null. The host backend keeps the first 160 bytes. */
  readonly label: string | null;
  /** How far the operation has come. */
  readonly state: 'queued' | 'running' | 'done' | 'failed';
  /** When the program made the call. */
  readonly queuedMs: number;
  /** When the operation began; null before. */
  readonly startedMs: number | null;
  /** When the operation ended; null before. */
  readonly endedMs: number | null;
  /**
   * Algorithm that executed it, such as 'board one-shot' or 'ring'; for a captured step its contents. Null if
   * the backend does not report it.
   */
  readonly algorithm: string | null;
  /**
   * Where the program made the call, such as 'train.ts:57'. Null if calls follow too fast to look up each
   * one.
   */
  readonly callSite: string | null;
}
