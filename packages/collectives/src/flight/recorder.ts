// Keeps this rank's latest operations on a group and their outcomes, for backends without a flight record of
// their own. The native recorder, which can be read while JavaScript hangs, is
// native/coll/flight/flight_recorder.h.

import type { Operation, Run } from '../backend.ts';
import { byteSize, type DType } from '../dtype.ts';
import { callSite } from '../group/call-site.ts';
import type { FlightEntry } from './entry.ts';

type Entry = { -readonly [K in keyof FlightEntry]: FlightEntry[K] };

const capacity = 256;

// Looking up the lines of calls takes at most 1/share of the time, averaged over averageMs, so that all calls of a
// short burst get theirs. A lookup counts for at most mostMs, so that a slow one, which had to read files, does not
// delay the next ones for long. native/coll/engine/host_group.cc has the same rule.
const share = 400;
const averageMs = 2_000;
const mostMs = 0.5;

export class FlightRecorder {
  readonly #entries: Entry[] = [];
  /**
   * Offset from performance.now() to the host's monotonic clock. performance.now() is faster than
   * process.hrtime().
   */
  readonly #originMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  #number = 0;
  /** When the next lookup is due. It lies up to averageMs in the past where few were made. */
  #nextCallSiteMs = 0;

  /** Records an operation that starts now. Returns a function to call when it ends. */
  enter(operation: Operation): (error?: unknown, source?: number) => void {
    const now = this.#nowMs();
    return this.#enter(entryOf(operation, this.#number, now), now);
  }

  /** Records a launch of a captured step. Returns a function to call when it ends. */
  enterRun({ seq, contents }: Run): (error?: unknown) => void {
    const now = this.#nowMs();
    const entry = entryOf({ verb: 'barrier', seq, timeoutMs: 0, packing: 0 }, this.#number, now);
    return this.#enter({ ...entry, verb: 'capturedStep', algorithm: contents }, now);
  }

  #enter(entry: Entry, now: number): (error?: unknown, source?: number) => void {
    if (now >= this.#nextCallSiteMs) {
      entry.callSite = callSite() || null;
      const after = this.#nowMs();
      this.#nextCallSiteMs =
        Math.max(this.#nextCallSiteMs, after - averageMs) + share * Math.min(after - now, mostMs);
    }
    this.#entries[this.#number % capacity] = entry;
    this.#number++;
    return (error, source) => {
      entry.endedMs = this.#nowMs();
      entry.state = error === undefined ? 'done' : 'failed';
      if (source !== undefined) entry.peer = source;
    };
  }

  /** Returns copies of the entries in call order. */
  entries(): FlightEntry[] {
    return this.#entries.map((entry) => ({ ...entry })).sort((a, b) => a.number - b.number);
  }

  #nowMs(): number {
    return this.#originMs + performance.now();
  }
}

function entryOf(operation: Operation, number: number, now: number): Entry {
  const { verb, seq } = operation;
  const { dtype, count } = lengthOf(operation);
  return {
    number,
    verb,
    seq,
    dtype,
    count,
    bytes: dtype === null ? 0 : count * byteSize(dtype),
    op: 'op' in operation ? operation.op : null,
    root: 'root' in operation ? operation.root : null,
    peer: 'peer' in operation ? operation.peer : null,
    tag: 'tag' in operation ? operation.tag : null,
    label: (operation as { readonly label?: string }).label ?? null,
    state: 'running',
    queuedMs: now,
    startedMs: now,
    endedMs: null,
    algorithm: null,
    callSite: null,
  };
}

/** Returns dtype and number of elements as FlightEntry defines them. */
export function lengthOf(operation: Operation): { dtype: DType | null; count: number } {
  switch (operation.verb) {
    case 'barrier':
      return { dtype: null, count: 0 };
    case 'scatter':
    case 'reduceScatter': {
      const { dtype, count } = operation.output;
      return { dtype, count: sum(operation.counts) ?? count };
    }
    case 'allGather':
    case 'gather': {
      const { dtype, count } = operation.input;
      return { dtype, count: sum(operation.counts) ?? count };
    }
    case 'allToAll':
      return operation.input;
    default:
      return operation.buffer;
  }
}

function sum(counts: readonly number[] | null): number | undefined {
  return counts?.reduce((total, count) => total + count, 0);
}
