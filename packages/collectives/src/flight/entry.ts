// An entry of a flight record, as backends keep it and programs read it.
import type { Verb } from '../all-verbs.ts';
import type { DType } from '../dtype.ts';
import type { ReduceOp } from '../reduce-ops.ts';

/**
 * One operation of a flight record. A call may be several: an object is two. Times are milliseconds of the host's
 * monotonic clock, that of process.hrtime(): the same for all processes of a host.
 */
export interface FlightEntry {
  /** How many operations this rank had called on the group before. */
  readonly number: number;
  /** 'capturedStep': a run of a step that has collectives in it. */
  readonly verb: Verb | 'capturedStep';
  /** Position among the group's collectives; of a message: among those of this rank to, or from, that peer. */
  readonly seq: number;
  /** Null for a barrier. */
  readonly dtype: DType | null;
  /** Elements: of the input, of the output for scatter and reduceScatter; of all parts together where they differ. */
  readonly count: number;
  readonly bytes: number;
  readonly op: ReduceOp | null;
  readonly root: number | null;
  /** Of a message, the other side; -1 of a receive from any rank that has not ended. */
  readonly peer: number | null;
  readonly tag: number | null;
  /** As in the options of the call; null where it has none. The host backend keeps the first 160 bytes. */
  readonly label: string | null;
  readonly state: 'queued' | 'running' | 'done' | 'failed';
  readonly queuedMs: number;
  readonly startedMs: number | null;
  readonly endedMs: number | null;
  /** What carried it out, such as 'board one-shot' or 'ring'; of a captured step what it contains; null where the backend does not tell. */
  readonly algorithm: string | null;
  /** Where the program called it, such as 'train.ts:57'; null of calls that follow too fast to find them all. */
  readonly callSite: string | null;
}
